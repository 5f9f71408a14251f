//! Enums whose values have one spelling: on the command line, in JSON and in messages.

/// An enum whose values have one name each, the same on the command line, in JSON and in messages.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_doc])* #[serde(rename = $text)] $value,)+
        }

        impl $name {
            /// All values, in the order they are listed to people.
            pub const ALL: &'static [$name] = &[$($name::$value),+];

            /// Its name on the command line and in `loxia.json`.
            pub fn name(self) -> &'static str {
                match self { $($name::$value => $text,)+ }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                $name::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| {
                    let known: Vec<&str> = $name::ALL.iter().map(|value| value.name()).collect();
                    $crate::Error::Options(format!(concat!($what, " {:?} is unknown; one of {}"), text, known.join(", ")))
                })
            }
        }
    };
}

pub(crate) use named;

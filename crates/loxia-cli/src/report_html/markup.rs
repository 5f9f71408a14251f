//! Texts and numbers as they stand in markup.

/// Text with the characters that HTML reads as markup written out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// A coordinate with one decimal: a tenth of a pixel is below what a screen shows.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A number as short as it can be said: `0.5`, `1,408`, `-3`.
pub(super) fn short(value: f64) -> String {
    if value.abs() >= 1000.0 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", crate::report::grouped(value.abs().round() as u64));
    }
    if value != 0.0 && value.abs() < 0.001 {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts() {
        assert_eq!([px(3.0), px(2.71), px(-0.5)], ["3", "2.7", "-0.5"]);
        assert_eq!([short(0.5), short(11_587.0), short(-2.0), short(-0.0)], ["0.5", "11,587", "-2", "0"]);
        assert_eq!(short(0.0001), "1e-4");
        assert_eq!(escaped("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
    }
}

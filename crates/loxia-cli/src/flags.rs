//! Groups of flags that several commands share.

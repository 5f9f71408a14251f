//! Texts into terms, as scikit-learn's `CountVectorizer` cuts them.

/// How a text becomes terms. Texts are lower-cased first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analyser {
    /// Runs of at least two letters, digits or underscores: scikit-learn's `(?u)\b\w\w+\b`.
    ///
    /// Marks that Unicode counts among letters (vowel signs of Indic scripts) belong to the word here, where
    /// Python's `\w` cuts at them.
    Words,
    /// Runs of characters within the words between white space, each word with a space on both sides:
    /// scikit-learn's `char_wb`.
    Characters {
        /// Shortest run, at least 1.
        shortest: u8,
        /// Longest run; a word shorter than that gives itself once.
        longest: u8,
    },
}

impl Analyser {
    /// Calls `see` with each term of a text, in order, repetitions included.
    ///
    /// ```
    /// use loxia_search::Analyser;
    /// let mut terms = Vec::new();
    /// Analyser::Words.for_each_term("A Red bird, x", |term| terms.push(term.to_owned()));
    /// assert_eq!(terms, ["red", "bird"]);
    /// terms.clear();
    /// Analyser::Characters { shortest: 3, longest: 4 }.for_each_term("Ox", |term| terms.push(term.to_owned()));
    /// assert_eq!(terms, [" ox", "ox ", " ox "]);
    /// ```
    pub fn for_each_term(self, text: &str, see: impl FnMut(&str)) {
        let lower = text.to_lowercase();
        match self {
            Analyser::Words => words(&lower, see),
            Analyser::Characters { shortest, longest } => {
                character_runs(&lower, usize::from(shortest.max(1)), usize::from(longest), see);
            }
        }
    }
}

fn words(text: &str, see: impl FnMut(&str)) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let runs = text.split(|c| !is_word(c));
    // At least two characters, not bytes.
    runs.filter(|run| run.chars().nth(1).is_some()).for_each(see);
}

fn character_runs(text: &str, shortest: usize, longest: usize, mut see: impl FnMut(&str)) {
    let mut padded = String::new();
    let mut starts = Vec::new();
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        padded.clear();
        padded.extend([" ", word, " "]);
        starts.clear();
        starts.extend(padded.char_indices().map(|(start, _)| start));
        let characters = starts.len();
        starts.push(padded.len());
        for length in shortest..=longest {
            if length >= characters {
                // A word that is not longer than the run counts once, as a whole.
                see(&padded);
                break;
            }
            (0..=characters - length).for_each(|at| see(&padded[starts[at]..starts[at + length]]));
        }
    }
}

/// What Python's `str.split` takes for space: Unicode's white space and the four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(analyser: Analyser, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        analyser.for_each_term(text, |term| terms.push(term.to_owned()));
        terms
    }

    #[test]
    fn words_have_two_characters_and_keep_underscores_and_digits() {
        assert_eq!(terms(Analyser::Words, "É a ÉÉ x_1 don't 42"), ["éé", "x_1", "don", "42"]);
        assert!(terms(Analyser::Words, " . , ").is_empty());
    }

    #[test]
    fn runs_stay_within_words_and_short_words_count_once() {
        let analyser = Analyser::Characters { shortest: 3, longest: 5 };
        assert_eq!(terms(analyser, "a"), [" a "]);
        assert_eq!(terms(analyser, "ab"), [" ab", "ab ", " ab "]);
        assert_eq!(terms(analyser, "é\u{1c}b"), [" é ", " b "]);
        assert_eq!(terms(analyser, "abc").len(), 3 + 2 + 1);
    }
}

//! What trec_eval calls a measure, and where it prints it.

use super::{Kind, Measure};

impl Measure {
    /// trec_eval's name (`ndcg_cut_10`), or ours where it has none.
    ///
    /// ```
    /// use loxia_eval::Measure;
    /// let name = |text: &str| text.parse::<Measure>().unwrap().trec_eval_name();
    /// assert_eq!(name("nDCG@10"), "ndcg_cut_10");
    /// assert_eq!(name("IPrec@0.1"), "iprec_at_recall_0.10");
    /// assert_eq!(name("Judged@10"), "Judged@10");
    /// ```
    pub fn trec_eval_name(&self) -> String {
        let (whole, cut) = match self.kind {
            Kind::Ndcg { exponential: false } => ("ndcg", "ndcg_cut"),
            Kind::ReciprocalRank => ("recip_rank", "recip_rank_cut"),
            Kind::AveragePrecision => ("map", "map_cut"),
            Kind::GeometricAveragePrecision => ("gm_map", ""),
            Kind::Precision => ("P", "P"),
            Kind::Recall => ("recall", "recall"),
            Kind::Success => ("success", "success"),
            Kind::RPrecision => ("Rprec", ""),
            Kind::Bpref => ("bpref", ""),
            Kind::InferredAp => ("infAP", ""),
            Kind::InterpolatedPrecision { recall } => return format!("iprec_at_recall_{recall:.2}"),
            Kind::SetPrecision { relative: false } => ("set_P", ""),
            Kind::SetPrecision { relative: true } => ("set_relative_P", ""),
            Kind::SetRecall => ("set_recall", ""),
            Kind::SetF { beta } if beta != 1.0 => return format!("set_F_{beta:?}"),
            Kind::SetF { .. } => ("set_F", ""),
            Kind::SetAp => ("set_map", ""),
            Kind::NumQueries => ("num_q", ""),
            Kind::NumRetrieved => ("num_ret", ""),
            Kind::NumRelevant => ("num_rel", ""),
            Kind::NumRelevantRetrieved => ("num_rel_ret", ""),
            Kind::Ndcg { exponential: true } | Kind::Judged => return self.to_string(),
        };
        match self.cutoff {
            Some(cutoff) => format!("{cut}_{cutoff}"),
            None => whole.to_owned(),
        }
    }

    /// Place in trec_eval's output, which follows its own order and not that of the request: the number
    /// of the block, then the cutoff within it.
    pub(crate) fn trec_eval_place(&self) -> (u8, f64) {
        let block = match (self.kind, self.cutoff) {
            (Kind::NumQueries, _) => 0,
            (Kind::NumRetrieved, _) => 1,
            (Kind::NumRelevant, _) => 2,
            (Kind::NumRelevantRetrieved, _) => 3,
            (Kind::AveragePrecision, None) => 4,
            (Kind::GeometricAveragePrecision, _) => 5,
            (Kind::RPrecision, _) => 6,
            (Kind::Bpref, _) => 7,
            (Kind::ReciprocalRank, None) => 8,
            (Kind::InterpolatedPrecision { .. }, _) => 9,
            (Kind::Precision, _) => 10,
            (Kind::Recall, _) => 11,
            (Kind::InferredAp, _) => 12,
            (Kind::Ndcg { exponential: false }, None) => 13,
            (Kind::Ndcg { exponential: false }, Some(_)) => 14,
            (Kind::AveragePrecision, Some(_)) => 15,
            (Kind::Success, _) => 16,
            (Kind::SetPrecision { relative: false }, _) => 17,
            (Kind::SetPrecision { relative: true }, _) => 18,
            (Kind::SetRecall, _) => 19,
            (Kind::SetAp, _) => 20,
            (Kind::SetF { .. }, _) => 21,
            (Kind::ReciprocalRank, Some(_)) => 22,
            (Kind::Ndcg { exponential: true }, _) => 23,
            (Kind::Judged, _) => 24,
        };
        let within = match self.kind {
            Kind::InterpolatedPrecision { recall } => recall,
            _ => self.cutoff.unwrap_or(0) as f64,
        };
        (block, within)
    }

    /// Whether a value for a single query says anything: not for the number of queries and for what is
    /// defined over all of them; trec_eval prints neither.
    pub fn is_per_query(&self) -> bool {
        !matches!(self.kind, Kind::NumQueries | Kind::GeometricAveragePrecision)
    }

    /// Whether its values are whole numbers.
    pub fn is_count(&self) -> bool {
        self.aggregation() == super::Aggregation::Sum
    }
}

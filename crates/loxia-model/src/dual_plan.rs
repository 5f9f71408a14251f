//! What a dual encoder will be, decided from directories and flags before any weight is read.

use std::path::{Path, PathBuf};

use crate::digest::{ModelDigest, encoder_files};
use crate::directory::ModelDirectory;
use crate::engine::Machine;
use crate::error::{Error, Result};
use crate::families::ModelConfig;
use crate::layout::Layout;
use crate::network::Top;
use crate::options::{ModelOptions, Pooling, Similarity, Variant};
use crate::sentence::{Step, TowerFiles};
use crate::spec::ModelSpec;
use crate::text_encoder::{TextEncoderFacts, TowerFacts};
use crate::weights::WeightStore;

/// One tower before its weights are read.
#[derive(Debug, Clone)]
pub(crate) struct TowerPlan {
    pub(crate) config: ModelConfig,
    pub(crate) files: TowerFiles,
    pub(crate) layout: Layout,
    pub(crate) pooling: Pooling,
    pub(crate) prompt: String,
    /// Width vectors are cut to.
    pub(crate) truncate: Option<usize>,
}

impl TowerPlan {
    /// What of the network above the encoder the pooling reads.
    pub(crate) fn top(&self) -> Top {
        if self.pooling == Pooling::Tanh { Top::Pooler } else { Top::Bare }
    }

    pub(crate) fn step_names(&self) -> Vec<String> {
        let name = |step: &Step| match step {
            Step::Normalize => "normalize".to_owned(),
            Step::Dense { inputs, outputs, activation, .. } => {
                format!("dense {inputs}x{outputs} {}", activation.name())
            }
        };
        self.files.steps.iter().map(name).collect()
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = encoder_files(&self.files.transformer)?;
        for step in &self.files.steps {
            if let Step::Dense { directory, .. } = step {
                files.push(directory.join("config.json"));
                files.extend(WeightStore::paths(directory)?);
            }
        }
        Ok(files)
    }
}

/// A dual encoder before its weights are read.
#[derive(Debug)]
pub(crate) struct DualPlan {
    pub(crate) name: String,
    pub(crate) because: String,
    pub(crate) query: TowerPlan,
    pub(crate) item: TowerPlan,
    pub(crate) similarity: Similarity,
}

impl DualPlan {
    pub(crate) fn resolve(spec: &ModelSpec, options: &ModelOptions) -> Result<Self> {
        match spec {
            ModelSpec::Towers(query, item) => {
                let query = Self::resolve(query, options)?;
                let item = Self::resolve(item, options)?;
                let name = format!("{},{}", query.name, item.name);
                query.with_items_of(item, name)
            }
            ModelSpec::Directory(_) | ModelSpec::Hub(_) => Self::of_directory(&spec.directory()?, options),
        }
    }

    fn of_directory(root: &Path, options: &ModelOptions) -> Result<Self> {
        let directory = ModelDirectory::read(root)?;
        if let Some((query, item)) = directory.towers() {
            let stored = directory.loxia.as_ref().and_then(|loxia| loxia.similarity);
            // Layout and pooling are each tower's own; only what concerns both is stored above them.
            let options = ModelOptions { similarity: options.similarity.or(stored), ..options.clone() };
            let query = Self::of_directory(&query, &options)?;
            let item = Self::of_directory(&item, &options)?;
            return query.with_items_of(item, directory.name());
        }
        let decision = directory.decide(directory.config().ok().as_ref(), options)?;
        if decision.variant != Variant::Dual {
            return Err(Error::Options(format!(
                "{}: this is a cross-encoder (variant {}, {}); to use its encoder for vectors say --variant dual \
                 --pooling cls|tanh|mean|max|lse|marker",
                root.display(),
                decision.variant,
                decision.because
            )));
        }
        let loxia = directory.loxia.as_ref();
        let sentence = directory.sentence.as_ref();
        let pooling = options.pooling.or_else(|| loxia.and_then(|loxia| loxia.pooling));
        let tower = |files: TowerFiles, prompt: &str| -> Result<TowerPlan> {
            let config = ModelConfig::read(&files.transformer.join("config.json"))?;
            let pooling = pooling.or(files.pooling).ok_or_else(|| Error::Undecided {
                path: root.to_owned(),
                why: "nothing says how a text's states become one vector".into(),
                flags: "--pooling cls, tanh, mean, max, lse or marker".into(),
            })?;
            let mut layout = directory.layout(Variant::Dual, options);
            if layout.max_length.is_none() {
                layout.max_length = files.max_length.map(|length| length.min(config.usable_positions()));
            }
            let truncate = sentence.and_then(|sentence| sentence.truncate);
            Ok(TowerPlan { config, files, layout, pooling, prompt: prompt.to_owned(), truncate })
        };
        let (query, item) = match sentence {
            Some(sentence) => (
                tower(sentence.query.clone(), sentence.query_prompt())?,
                tower(sentence.item.clone(), sentence.item_prompt())?,
            ),
            None => {
                let bare = TowerFiles::bare(root);
                (tower(bare.clone(), "")?, tower(bare, "")?)
            }
        };
        // sentence-transformers compares by cosine unless told otherwise; bare encoders were trained for dots.
        let similarity = match (options.similarity.or(loxia.and_then(|loxia| loxia.similarity)), sentence) {
            (Some(chosen), _) => chosen,
            (None, Some(sentence)) => sentence.similarity()?.unwrap_or(Similarity::Cosine),
            (None, None) => Similarity::Dot,
        };
        Ok(DualPlan { name: directory.name(), because: decision.because, query, item, similarity })
    }

    /// This model's query tower and another's item tower.
    fn with_items_of(self, other: DualPlan, name: String) -> Result<Self> {
        if self.similarity != other.similarity {
            return Err(Error::Options(format!(
                "the towers are compared by {} and by {}; choose with --similarity",
                self.similarity, other.similarity
            )));
        }
        Ok(DualPlan { name, item: other.item, ..self })
    }

    /// Whether one encoder serves both sides.
    pub(crate) fn shared(&self) -> bool {
        self.query.files == self.item.files
            && self.query.layout == self.item.layout
            && self.query.pooling == self.item.pooling
    }

    /// The digest of both towers' files and settings.
    pub(crate) fn digest(&self, facts: &TextEncoderFacts, machine: &Machine) -> Result<ModelDigest> {
        let tower = |plan: &TowerPlan, facts: &TowerFacts| {
            serde_json::json!({
                "layout": facts.layout, "pooling": facts.pooling, "steps": facts.steps, "prompt": facts.prompt,
                "include_prompt": plan.files.include_prompt, "lower_case": plan.files.lower_case,
                "truncate": plan.truncate,
            })
        };
        let settings = serde_json::json!({
            "variant": "dual", "similarity": facts.similarity,
            "query": tower(&self.query, &facts.query), "item": tower(&self.item, &facts.item),
            "kernel": machine.kernel.same_bits(machine.precision.into()).name(), "precision": machine.precision.in_digests(),
        });
        let mut files = self.query.files()?;
        if !self.shared() {
            files.extend(self.item.files()?);
        }
        Ok(ModelDigest::new(files, settings.to_string()))
    }
}

//! What a program would have Python call: the few classes and functions that tensors are made with are known, and
//! nothing else is more than its name.

use std::sync::Arc;

use super::{Machine, Result};
use crate::pickle::value::{Id, MAX_NAME, Storage, Tensor, Value};
use crate::weights::Dtype;

impl Machine<'_> {
    pub(super) fn stack_global(&mut self) -> Result<()> {
        let name = self.pop()?;
        let module = self.pop()?;
        let (Value::Text(module), Value::Text(name)) =
            (&self.values[module as usize], &self.values[name as usize])
        else {
            return Err(self.damaged("the name of a class"));
        };
        // Both may be recalled texts of any length: joined only if the whole is a name.
        if module.len() + name.len() >= MAX_NAME {
            return Err(self.fault(format!("a name of more than {MAX_NAME} bytes")));
        }
        let name = self.name(format!("{module}.{name}"))?;
        self.push(Value::Global(name))
    }

    pub(super) fn call(&mut self, callable: Id, arguments: Id) -> Result<()> {
        let name = self.name_of(callable);
        let value = match (&self.values[callable as usize], &*name) {
            (Value::Global(_), "collections.OrderedDict") => self.ordered_dict(arguments)?,
            (Value::Global(_), "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor") => {
                match self.tensor(arguments) {
                    Some(tensor) => {
                        self.spend(2 * tensor.shape.len())?;
                        Value::Tensor(tensor.into())
                    }
                    None => Value::Opaque(name),
                }
            }
            (Value::Global(_), "torch._utils._rebuild_parameter") => match self.argument(arguments, 0) {
                Some(Value::Tensor(tensor)) => Value::Tensor(tensor.clone()),
                _ => Value::Opaque(name),
            },
            // A size is its tuple, which nothing can change: no copy.
            (Value::Global(_), "torch.Size") => match &self.values[arguments as usize] {
                Value::Tuple(items)
                    if matches!(
                        items.first().map(|&id| &self.values[id as usize]),
                        Some(Value::Tuple(_))
                    ) =>
                {
                    return self.push_id(items[0]);
                }
                _ => Value::Opaque(name),
            },
            _ => Value::Opaque(name),
        };
        self.push(value)
    }

    /// Attributes set on a dictionary (PyTorch's `_metadata`) are dropped; on anything else the result is
    /// no longer known.
    pub(super) fn build(&mut self) -> Result<()> {
        self.pop()?;
        let object = self.top()?;
        if matches!(self.values[object as usize], Value::Dict(_) | Value::Opaque(_)) {
            return Ok(());
        }
        let name = self.name_of(object);
        self.pop()?;
        self.push(Value::Opaque(name))
    }

    fn ordered_dict(&mut self, arguments: Id) -> Result<Value> {
        let Some(list) = self.argument(arguments, 0) else { return Ok(Value::Dict(Vec::new())) };
        let items = match list {
            Value::List(items) => items.as_slice(),
            Value::Tuple(items) => items,
            _ => return Ok(Value::Opaque("collections.OrderedDict".into())),
        };
        let entries: Option<Vec<(Id, Id)>> = items
            .iter()
            .map(|&item| match &self.values[item as usize] {
                Value::Tuple(pair) if pair.len() == 2 => Some((pair[0], pair[1])),
                Value::List(pair) if pair.len() == 2 => Some((pair[0], pair[1])),
                _ => None,
            })
            .collect();
        let entries = entries.ok_or_else(|| self.damaged("an ordered dictionary"))?;
        self.spend(entries.len())?;
        Ok(Value::Dict(entries))
    }

    fn argument(&self, arguments: Id, index: usize) -> Option<&Value> {
        match &self.values[arguments as usize] {
            Value::Tuple(items) => items.get(index).map(|&id| &self.values[id as usize]),
            _ => None,
        }
    }

    /// `_rebuild_tensor_v2(storage, offset, size, stride, ...)`.
    fn tensor(&self, arguments: Id) -> Option<Tensor> {
        let Value::Storage(storage) = self.argument(arguments, 0)? else { return None };
        let Value::Int(offset) = *self.argument(arguments, 1)? else { return None };
        let shape = self.sizes(self.argument(arguments, 2)?)?;
        let strides = self.sizes(self.argument(arguments, 3)?)?;
        let offset = u64::try_from(offset).ok()?;
        (shape.len() == strides.len()).then(|| Tensor { storage: storage.clone(), offset, shape, strides })
    }

    fn sizes(&self, value: &Value) -> Option<Vec<u64>> {
        // No weight has more sides; a longer tuple would be copied again by every tensor that names it.
        const MAX_SIDES: usize = 8;
        let Value::Tuple(items) = value else { return None };
        let side = |&id: &Id| match self.values[id as usize] {
            Value::Int(side) => u64::try_from(side).ok(),
            _ => None,
        };
        if items.len() > MAX_SIDES { None } else { items.iter().map(side).collect() }
    }

    /// `("storage", class, key, location, elements)`.
    pub(super) fn persistent(&self, reference: Id) -> Value {
        let read = || {
            let Value::Text(tag) = self.argument(reference, 0)? else { return None };
            let Value::Global(class) = self.argument(reference, 1)? else { return None };
            let Value::Text(key) = self.argument(reference, 2)? else { return None };
            let Value::Int(elements) = *self.argument(reference, 4)? else { return None };
            let dtype = storage_type(class)?;
            let elements = u64::try_from(elements).ok()?;
            (&**tag == "storage" && key.len() <= MAX_NAME)
                .then(|| Value::Storage(Arc::new(Storage { dtype, key: key.clone(), elements })))
        };
        read().unwrap_or_else(|| {
            Value::Opaque(match self.argument(reference, 1) {
                Some(Value::Global(class)) => class.clone(),
                _ => "persistent object".into(),
            })
        })
    }

    pub(super) fn name_of(&self, id: Id) -> Arc<str> {
        match &self.values[id as usize] {
            Value::Global(name) | Value::Opaque(name) => name.clone(),
            Value::Tensor(_) => "tensor".into(),
            Value::Storage(_) => "storage".into(),
            _ => "a value".into(),
        }
    }
}

fn storage_type(class: &str) -> Option<Dtype> {
    Some(match class.strip_prefix("torch.")? {
        "FloatStorage" => Dtype::F32,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        "DoubleStorage" => Dtype::F64,
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ShortStorage" => Dtype::I16,
        "CharStorage" => Dtype::I8,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::Bool,
        _ => return None,
    })
}

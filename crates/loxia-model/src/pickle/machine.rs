//! The pickle machine, restricted.
//!
//! Values live in an arena and refer to each other by number, so nothing is copied when a program repeats
//! itself and nothing recurses. Every instruction adds at most one value, names are shared, and what must be
//! copied (elements between containers, the halves of a name) spends from a budget proportional to the
//! program's length. Values, stack and memo have an end of their own: memory is bounded twice.

mod calls;

use std::collections::HashMap;
use std::sync::Arc;

use super::value::{Id, MAX_NAME, Program, Value};
use crate::error::Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// Values, stack entries, marks or memo entries; a checkpoint with its optimiser has some ten thousand.
const MAX_VALUES: usize = 1 << 20;

/// Values that cannot change and so need to exist only once, at these places of the arena.
const NONE: Id = 0;
const FALSE: Id = 1;
const TRUE: Id = 2;
const OTHER: Id = 3;
const EMPTY: Id = 4;

/// Runs a pickle of protocol 2 to 5 (older opcodes included).
pub(crate) fn run(program: &[u8]) -> Result<Program> {
    let mut machine = Machine {
        input: program,
        at: 0,
        values: vec![
            Value::None,
            Value::Bool(false),
            Value::Bool(true),
            Value::Other,
            Value::Tuple(Box::default()),
        ],
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        budget: program.len() + 1024,
    };
    let root = machine.run()?;
    Ok(Program::new(machine.values, root))
}

struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Stack heights at which a mark stands.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// How many elements and bytes of names may still be copied.
    budget: usize,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Id> {
        loop {
            let opcode = self.take(1)?[0];
            if opcode == b'.' {
                return self.pop();
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            // Protocol and frames.
            0x80 => self.protocol(),
            0x95 => self.take(8).map(drop),
            // Stack.
            b'(' => {
                self.marks.push(self.stack.len());
                self.bounded(self.marks.len())
            }
            b'0' => self.discard(),
            b'1' => self.pop_mark().map(drop),
            b'2' => {
                let top = self.top()?;
                self.push_id(top)
            }
            // Atoms.
            b'N' => self.push_id(NONE),
            0x88 => self.push_id(TRUE),
            0x89 => self.push_id(FALSE),
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(value.into()))
            }
            b'K' => {
                let value = self.length::<1>()?;
                self.push(Value::Int(value as i64))
            }
            b'M' => {
                let value = self.length::<2>()?;
                self.push(Value::Int(value as i64))
            }
            0x8a => self.long::<1>(),
            0x8b => self.long::<4>(),
            b'I' | b'L' => self.decimal(),
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(value))
            }
            b'F' => {
                let value = self.line()?.parse().map_err(|_| self.damaged("a decimal number"))?;
                self.push(Value::Float(value))
            }
            b'X' => self.text::<4>(),
            0x8c | b'U' => self.text::<1>(),
            0x8d => self.text::<8>(),
            b'T' => self.text::<4>(),
            b'V' | b'S' => {
                let line = Arc::from(self.line()?.trim_matches(['\'', '"']));
                self.push(Value::Text(line))
            }
            b'B' => self.skip::<4>(),
            b'C' => self.skip::<1>(),
            0x8e | 0x96 => self.skip::<8>(),
            // Containers.
            b')' => self.push_id(EMPTY),
            0x85 => self.tuple(1),
            0x86 => self.tuple(2),
            0x87 => self.tuple(3),
            b't' => {
                let items = self.pop_mark()?.into_boxed_slice();
                self.push(Value::Tuple(items))
            }
            b']' => self.push(Value::List(Vec::new())),
            b'l' => {
                let items = self.pop_mark()?;
                self.push(Value::List(items))
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(items)
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b'd' => {
                let items = self.pop_mark()?;
                let entries = self.in_pairs(&items)?;
                self.push(Value::Dict(entries))
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.insert(vec![(key, value)])
            }
            b'u' => {
                let items = self.pop_mark()?;
                let entries = self.in_pairs(&items)?;
                self.insert(entries)
            }
            0x8f => self.push_id(OTHER),
            0x90 => self.pop_mark().map(drop),
            0x91 => {
                self.pop_mark()?;
                self.push_id(OTHER)
            }
            // Memo.
            b'q' => {
                let key = self.length::<1>()?;
                self.remember(key)
            }
            b'r' => {
                let key = self.length::<4>()?;
                self.remember(key)
            }
            b'p' => {
                let key = self.line_number()?;
                self.remember(key)
            }
            0x94 => self.remember(self.memo.len()),
            b'h' => {
                let key = self.length::<1>()?;
                self.recall(key)
            }
            b'j' => {
                let key = self.length::<4>()?;
                self.recall(key)
            }
            b'g' => {
                let key = self.line_number()?;
                self.recall(key)
            }
            // Everything that would run code.
            b'c' => {
                let name = self.two_lines()?;
                self.push(Value::Global(name))
            }
            0x93 => self.stack_global(),
            b'R' | 0x81 => {
                let arguments = self.pop()?;
                let callable = self.pop()?;
                self.call(callable, arguments)
            }
            0x92 => {
                self.pop()?;
                let arguments = self.pop()?;
                let callable = self.pop()?;
                self.call(callable, arguments)
            }
            b'b' => self.build(),
            b'i' => {
                let name = self.two_lines()?;
                self.pop_mark()?;
                self.push(Value::Opaque(name))
            }
            b'o' => {
                let items = self.pop_mark()?;
                let name = items.first().map_or_else(|| "object".into(), |&class| self.name_of(class));
                self.push(Value::Opaque(name))
            }
            b'Q' => {
                let reference = self.pop()?;
                let value = self.persistent(reference);
                self.push(value)
            }
            b'P' => {
                self.line()?;
                self.push(Value::Opaque("persistent id".into()))
            }
            other => Err(self.fault(format!("opcode {other:#04x} is not one that checkpoints use"))),
        }
    }

    // Reading the program.

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.input.len());
        let Some(end) = end else {
            return Err(self.fault(format!("{count} more bytes are needed: the pickle is truncated")));
        };
        let bytes = &self.input[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("take returns what was asked for"))
    }

    /// A little-endian unsigned number of `N` bytes.
    fn length<const N: usize>(&mut self) -> Result<usize> {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(self.take(N)?);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| self.damaged("a length"))
    }

    fn line(&mut self) -> Result<&str> {
        let rest = &self.input[self.at..];
        let Some(end) = rest.iter().position(|&byte| byte == b'\n') else {
            return Err(self.fault("a line has no end: the pickle is truncated".into()));
        };
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).map_err(|_| self.damaged("a line of text"))
    }

    /// Module and name of a class, a line each.
    fn two_lines(&mut self) -> Result<Arc<str>> {
        let module = self.line()?.to_owned();
        let name = format!("{module}.{}", self.line()?);
        self.name(name)
    }

    /// A name that will be repeated.
    fn name(&mut self, name: String) -> Result<Arc<str>> {
        if name.len() > MAX_NAME {
            return Err(self.fault(format!("a name of {} bytes; {MAX_NAME} are enough for any", name.len())));
        }
        self.spend(name.len())?;
        Ok(name.into())
    }

    fn line_number(&mut self) -> Result<usize> {
        self.line()?.parse().map_err(|_| self.damaged("a memo number"))
    }

    fn protocol(&mut self) -> Result<()> {
        match self.take(1)?[0] {
            0..=5 => Ok(()),
            other => Err(self.fault(format!("pickle protocol {other} is unknown (2 to 5 are read)"))),
        }
    }

    fn decimal(&mut self) -> Result<()> {
        let line = self.line()?.trim_end_matches('L');
        let value = match line {
            "00" => Value::Bool(false),
            "01" => Value::Bool(true),
            line => line.parse().map_or(Value::Other, Value::Int),
        };
        self.push(value)
    }

    fn long<const N: usize>(&mut self) -> Result<()> {
        let count = self.length::<N>()?;
        let bytes = self.take(count)?;
        let value = if bytes.len() <= 8 {
            let negative = bytes.last().is_some_and(|&byte| byte & 0x80 != 0);
            let mut wide = [if negative { 0xff } else { 0 }; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            Value::Int(i64::from_le_bytes(wide))
        } else {
            Value::Other
        };
        self.push(value)
    }

    fn text<const N: usize>(&mut self) -> Result<()> {
        let count = self.length::<N>()?;
        let text = Arc::from(String::from_utf8_lossy(self.take(count)?));
        self.push(Value::Text(text))
    }

    fn skip<const N: usize>(&mut self) -> Result<()> {
        let count = self.length::<N>()?;
        self.take(count)?;
        self.push_id(OTHER)
    }

    // Stack and memo.

    fn push(&mut self, value: Value) -> Result<()> {
        self.bounded(self.values.len())?;
        let id = self.values.len() as Id;
        self.values.push(value);
        self.push_id(id)
    }

    fn push_id(&mut self, id: Id) -> Result<()> {
        self.stack.push(id);
        self.bounded(self.stack.len())
    }

    fn bounded(&self, count: usize) -> Result<()> {
        if count < MAX_VALUES {
            return Ok(());
        }
        Err(self.fault(format!("{MAX_VALUES} values, and no checkpoint has so many: a bomb")))
    }

    /// Height below which the current frame may not reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id> {
        if self.stack.len() <= self.floor() {
            return Err(self.fault("the stack is empty".into()));
        }
        Ok(self.stack.pop().expect("not empty"))
    }

    fn top(&self) -> Result<Id> {
        match self.stack.last() {
            Some(&id) if self.stack.len() > self.floor() => Ok(id),
            _ => Err(self.fault("the stack is empty".into())),
        }
    }

    fn discard(&mut self) -> Result<()> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>> {
        let Some(mark) = self.marks.pop() else {
            return Err(self.fault("a mark is missing".into()));
        };
        Ok(self.stack.split_off(mark))
    }

    fn remember(&mut self, key: usize) -> Result<()> {
        let top = self.top()?;
        let key = u32::try_from(key).map_err(|_| self.damaged("a memo number"))?;
        self.memo.insert(key, top);
        self.bounded(self.memo.len())
    }

    fn recall(&mut self, key: usize) -> Result<()> {
        match u32::try_from(key).ok().and_then(|key| self.memo.get(&key)) {
            Some(&id) => self.push_id(id),
            None => Err(self.fault(format!("memo entry {key} was never set"))),
        }
    }

    // Containers.

    fn tuple(&mut self, count: usize) -> Result<()> {
        if self.stack.len() < self.floor() + count {
            return Err(self.fault("the stack is too short for a tuple".into()));
        }
        let items = self.stack.split_off(self.stack.len() - count);
        self.push(Value::Tuple(items.into()))
    }

    fn in_pairs(&self, items: &[Id]) -> Result<Vec<(Id, Id)>> {
        if !items.len().is_multiple_of(2) {
            return Err(self.damaged("a dictionary"));
        }
        Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    fn append(&mut self, items: Vec<Id>) -> Result<()> {
        let list = self.top()?;
        match &mut self.values[list as usize] {
            Value::List(list) => list.extend(items),
            Value::Opaque(_) | Value::Other => {}
            _ => return Err(self.fault("something is appended to a value that is no list".into())),
        }
        Ok(())
    }

    fn insert(&mut self, entries: Vec<(Id, Id)>) -> Result<()> {
        let dict = self.top()?;
        match &mut self.values[dict as usize] {
            Value::Dict(dict) => dict.extend(entries),
            Value::Opaque(_) => {}
            _ => return Err(self.fault("an item is set on a value that is no dictionary".into())),
        }
        Ok(())
    }

    fn spend(&mut self, count: usize) -> Result<()> {
        match self.budget.checked_sub(count) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.fault("containers are copied again and again: a bomb".into())),
        }
    }

    fn damaged(&self, what: &str) -> Malformed {
        self.fault(format!("{what} is damaged"))
    }

    fn fault(&self, what: String) -> Malformed {
        Malformed::new(format!("pickle, byte {}: {what}", self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_and_memo() {
        // {"a": (1, True), "b": [None]} with protocol 2, as Python's pickle writes it.
        let program =
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01K\x01\x88\x86q\x02X\x01\x00\x00\x00bq\x03]q\x04Nau.";
        let program = run(program).unwrap();
        let Some(Value::Tuple(items)) = program.lookup(program.root(), "a") else { panic!("{program:?}") };
        assert_eq!((program.get(items[0]), program.get(items[1])), (&Value::Int(1), &Value::Bool(true)));
        assert!(matches!(program.lookup(program.root(), "b"), Some(Value::List(items)) if items.len() == 1));
    }

    #[test]
    fn code_is_named_and_not_run() {
        let program = run(b"cos\nsystem\n(S'echo gotcha'\ntR.").unwrap();
        assert_eq!(program.root(), &Value::Opaque("os.system".into()));
        assert_eq!(program.opaque(), ["os.system"]);
    }

    #[test]
    fn damage_is_an_error() {
        for program in [
            &b""[..],
            b".",
            b"\x80\x09.",
            b"t.",
            b"0.",
            b"(0.",
            b"K",
            b"X\xff\xff\xff\xff",
            b"h\x01.",
            b"\xff",
        ] {
            assert!(run(program).is_err(), "{program:?}");
        }
    }

    #[test]
    fn copying_one_list_again_and_again_is_stopped() {
        let mut program = b"\x80\x02](".to_vec();
        program.extend(b"NN\x86".repeat(1000));
        program.extend(b"e\x85q\x00");
        program.extend(b"ccollections\nOrderedDict\nq\x01");
        program.extend(b"h\x01h\x00R".repeat(1000));
        program.push(b'.');
        assert!(run(&program).unwrap_err().to_string().contains("a bomb"));
    }
}

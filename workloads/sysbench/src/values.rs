//! The values of all options for scripts.

use crate::interpreter::Interpreter;
use crate::setup::OptionValue;

impl Interpreter {
    /// Sets `sysbench.opt`, and globals as well if the script declares no options, as before 1.0.
    pub(crate) fn set_options(&self) -> mlua::Result<()> {
        let options = self.options()?;
        let sysbench: mlua::Table = self.lua().globals().get("sysbench")?;
        if sysbench.get::<mlua::Table>("cmdline")?.get::<mlua::Value>("options")?.is_nil() {
            self.set_globals(&options)?;
        }
        sysbench.set("opt", options)
    }

    /// Sets a global for each value. A function or a library of Lua stays: `debug` is an option, too.
    fn set_globals(&self, options: &mlua::Table) -> mlua::Result<()> {
        let globals = self.lua().globals();
        let libraries: mlua::Table = globals.get::<mlua::Table>("package")?.get("loaded")?;
        for pair in options.pairs::<mlua::String, mlua::Value>() {
            let (name, value) = pair?;
            let is_function = globals.get::<mlua::Value>(&name)?.is_function();
            if !is_function && !libraries.contains_key(&name)? {
                globals.set(name, value)?;
            }
        }
        Ok(())
    }

    /// The values of all options, by name.
    fn options(&self) -> mlua::Result<mlua::Table> {
        let options = self.lua().create_table()?;
        for (name, value) in &self.setup().options {
            match value {
                OptionValue::Flag(flag) => options.set(name.as_str(), *flag)?,
                OptionValue::Number(number) => options.set(name.as_str(), *number)?,
                OptionValue::Text(text) => options.set(name.as_str(), text.as_str())?,
                OptionValue::List(list) => options.set(name.as_str(), list.as_slice())?,
                OptionValue::Nothing => {}
            }
        }
        Ok(options)
    }
}

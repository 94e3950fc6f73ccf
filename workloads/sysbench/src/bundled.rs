//! The bundled scripts, which `require` finds after all of the user's own.

use mlua::{Lua, Table, Value};

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../scripts/", $name, ".lua")))),*]
    };
}

/// Their names and texts.
pub const SCRIPTS: &[(&str, &str)] = scripts![
    "bulk_insert",
    "micro",
    "oltp_common",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
];

/// Sets the search path for modules: the user's directories as in sysbench, then the bundled modules.
pub(crate) fn provide(lua: &Lua) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    let home = std::env::var("HOME").unwrap_or_default();
    let luarocks = ["share/lua/5.1/?.lua", "share/lua/5.1/?/init.lua", "share/lua/?.lua", "share/lua/?/init.lua"];
    let mut path: Vec<String> = ["./?.lua", "./?/init.lua", "./src/lua/?.lua"].map(str::to_owned).to_vec();
    path.extend(luarocks.iter().map(|place| format!("{home}/.luarocks/{place}")));
    path.extend(["/usr/local/share/lua/5.1/?.lua", "/usr/share/lua/5.1/?.lua"].map(str::to_owned));
    let cpath = [
        "./?.so".to_owned(),
        format!("{home}/.luarocks/lib/lua/5.1/?.so"),
        format!("{home}/.luarocks/lib/lua/?.so"),
        "/usr/local/lib/lua/5.1/?.so".to_owned(),
        "/usr/lib/lua/5.1/?.so".to_owned(),
    ];
    package.set("path", requested("LUA_PATH", &path.join(";")))?;
    package.set("cpath", requested("LUA_CPATH", &cpath.join(";")))?;
    let loaders: Table = package.get("loaders")?;
    let find = lua.create_function(|lua, name: String| match SCRIPTS.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => Ok(Value::Function(lua.load(*text).set_name(format!("={name}.lua")).into_function()?)),
        None => Ok(Value::String(lua.create_string(format!("\n\tno script '{name}' that comes along"))?)),
    })?;
    loaders.push(find)
}

/// The value of an environment variable; `;;` in it stands for the usual places, as in Lua.
fn requested(variable: &str, usual: &str) -> String {
    match std::env::var(variable) {
        Ok(requested) => requested.replace(";;", &format!(";{usual};")),
        Err(_) => usual.to_owned(),
    }
}

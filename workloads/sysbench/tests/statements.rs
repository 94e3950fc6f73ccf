//! The bundled scripts with a recorder in place of the API, in LuaJIT: their statements, and the checks of
//! `scripts/statements.lua`.

use mlua::Lua;

#[test]
fn the_bundled_scripts_send_what_they_should() {
    let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/statements.lua");
    // SAFETY: the scripts are the project's own; they use FFI, which mlua considers unsafe.
    let lua = unsafe { Lua::unsafe_new() };
    let run = lua
        .load(
            "local runner = ...
            arg = { [0] = runner, '--summary' }
            local said, ended = {}, nil
            function print(...) said[#said + 1] = table.concat({ ... }, '\\t') end
            function os.exit(code) ended = code error('the end', 0) end
            local done, words = pcall(dofile, runner)
            if not ended then said[#said + 1] = tostring(words) end
            return ended, table.concat(said, '\\n')",
        )
        .call::<(Option<i32>, String)>(runner);
    let (code, said) = run.unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.matches("ok ").count() >= 8 && !said.contains("FAILED"), "{said}");
}

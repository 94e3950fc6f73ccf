-- A command to LuaJIT, as in the option -j of its program: `off`, `opt=3`, or a module of `jit.*`.
local command = ...
local name, list = command:match("^([^=]*)=?(.*)$")
local arguments = {}
for word in list:gmatch("[^,]+") do arguments[#arguments + 1] = word end
if name == "opt" then
   require("jit.opt").start(unpack(arguments))
elseif type(jit[name]) == "function" then
   jit[name](unpack(arguments))
else
   local found, module = pcall(require, "jit." .. name)
   if not found or type(module.start) ~= "function" then
      error("unknown luaJIT command or jit.* modules not installed", 0)
   end
   module.start(unpack(arguments))
end

-- The script's own measurements: `rumba.op`, `rumba.count` and `rumba.logical_bytes`. `api.lua` loads this file when a
-- script first uses one of them. Experiments record them. Elsewhere they check their arguments only.

local api, ffi, _, _, _, _, this = ...

ffi.cdef [[
typedef struct {
  rumba_interface begins;
  uint32_t (*operation)(void *, const char *, size_t);
  uint32_t (*counter)(void *, const char *, size_t);
  void (*name_event)(void *, uint32_t);
  void (*add_to_counter)(void *, uint32_t, double);
  void (*add_logical_bytes)(void *, double);
} rumba_measures;
]]

local measures = ffi.cast("const rumba_measures *", api)
local name_event, add_to_counter = measures.name_event, measures.add_to_counter
local add_logical_bytes = measures.add_logical_bytes

-- Lua's numbers are exact up to 2^53.
local MOST = 9007199254740992

-- The number of each name that `rumba.operations` or `rumba.counters` declares; 0 if it is not measured. Each is looked
-- up once.
local function numbers(own, list, what, number)
   return setmetatable({}, { __index = function(known, name)
      local declared = type(own[list]) == "table" and own[list] or {}
      for _, one in ipairs(declared) do
         if one == name then
            known[name] = number(this, name, #name)
            return known[name]
         end
      end
      local names = #declared > 0 and table.concat(declared, ", ") or "none"
      error(string.format("rumba.%s: undeclared name '%s'; rumba.%s declares: %s", what, tostring(name), list, names), 3)
   end })
end

return function(own, name)
   -- The next use finds the functions themselves.
   setmetatable(own, nil)

   local operations = numbers(own, "operations", "op", measures.operation)
   local counters = numbers(own, "counters", "count", measures.counter)

   function own.op(operation)
      local number = operations[operation]
      if number > 0 then name_event(this, number) end
   end

   function own.count(counter, amount)
      local number = counters[counter]
      amount = amount or 1
      if not (amount >= 0 and amount <= MOST and amount % 1 == 0) then
         error("rumba.count: the amount must be a whole number from 0 to 2^53, not " .. tostring(amount), 2)
      end
      if number > 0 then add_to_counter(this, number, amount) end
   end

   function own.logical_bytes(bytes)
      if not (bytes >= -MOST and bytes <= MOST and bytes % 1 == 0) then
         error("rumba.logical_bytes: the bytes must be a whole number, not " .. tostring(bytes), 2)
      end
      add_logical_bytes(this, bytes)
   end

   return rawget(own, name)
end

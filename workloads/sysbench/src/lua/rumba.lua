-- The table `rumba`: the script's own measurements (`op`, `count`, `logical_bytes`), and keys and values (`kv`). `api.lua`
-- loads this file when a script first uses one of them. Experiments record the measurements. Elsewhere these functions
-- check their arguments only.

local api, ffi, _, _, _, _, this = ...

ffi.cdef [[
typedef struct { const char *start; size_t length; } rumba_bytes;

typedef struct {
  rumba_interface begins;
  uint32_t (*operation)(void *, const char *, size_t);
  uint32_t (*counter)(void *, const char *, size_t);
  void (*name_event)(void *, uint32_t);
  void (*add_to_counter)(void *, uint32_t, double);
  void (*add_logical_bytes)(void *, double);
  int (*kv_open)(void *);
  int (*kv_get)(void *, const char *, size_t, bool);
  int (*kv_put)(void *, const char *, size_t, const char *, size_t);
  int (*kv_delete)(void *, const char *, size_t);
  int (*kv_scan)(void *, const char *, size_t, uint32_t);
  int (*kv_begin)(void *);
  int (*kv_commit)(void *);
  int (*kv_rollback)(void *);
  void (*kv_value)(void *, rumba_bytes *);
  bool (*kv_entry)(void *, uint32_t, rumba_bytes *);
  void (*kv_error)(void *, rumba_bytes *);
} rumba_own;
]]

local program = ffi.cast("const rumba_own *", api)
local name_event, add_to_counter = program.name_event, program.add_to_counter
local add_logical_bytes = program.add_logical_bytes

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

-- ------------------------------------------------------------------ keys and values

local kv_get, kv_put, kv_delete, kv_scan = program.kv_get, program.kv_put, program.kv_delete, program.kv_scan
local kv_begin, kv_commit, kv_rollback = program.kv_begin, program.kv_commit, program.kv_rollback
local kv_value, kv_entry = program.kv_value, program.kv_entry

-- The outcomes of the program's calls.
local NO, FAILED, RESTART = 0, 2, 3

local text, bytes = ffi.string, ffi.new("rumba_bytes[2]")

-- Returns the outcome of a call; raises its error: a table that restarts the event, or a text that ends the run.
local function checked(outcome)
   if outcome < FAILED then return outcome end
   program.kv_error(this, bytes)
   local words = text(bytes[0].start, bytes[0].length)
   if outcome == RESTART then error({ errcode = sysbench.error.RESTART_EVENT, sql_errmsg = words }, 3) end
   error(words, 3)
end

local kv = {}

function kv:get(key, for_update)
   if checked(kv_get(this, key, #key, for_update == true)) == NO then return nil end
   kv_value(this, bytes)
   return text(bytes[0].start, bytes[0].length)
end

function kv:put(key, value) checked(kv_put(this, key, #key, value, #value)) end

function kv:delete(key) checked(kv_delete(this, key, #key)) end

-- Returns a list of at most `most` pairs of a key and its value, from a key on.
function kv:scan(first, most)
   checked(kv_scan(this, first, #first, most))
   local rows, count = {}, 0
   while kv_entry(this, count, bytes) do
      local key, value = bytes[0], bytes[1]
      count = count + 1
      rows[count] = { text(key.start, key.length), text(value.start, value.length) }
   end
   return rows
end

function kv:begin() checked(kv_begin(this)) end

function kv:commit() checked(kv_commit(this)) end

function kv:rollback() checked(kv_rollback(this)) end

return function(own, name)
   -- The next use finds the functions themselves.
   setmetatable(own, nil)

   local operations = numbers(own, "operations", "op", program.operation)
   local counters = numbers(own, "counters", "count", program.counter)

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

   function own.kv()
      checked(program.kv_open(this))
      return kv
   end

   return rawget(own, name)
end

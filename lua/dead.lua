-- Bury purchases that can't become orders: letter, result, acknowledgement.
--
-- KEYS[1] orders, stream   KEYS[2] dead, stream
-- KEYS[3..] the result key of each entry, string; the dead key where the user is
--      not known
-- ARGV group, channel; then for each entry: its id, user or "", result or "",
--      the reason, attempts, first error, last error, milliseconds since the
--      first attempt, n; and the n names and values that the entry had
--
-- A letter holds entry, reason, attempts, first_error, last_error, first_ms and
-- dead_ms by Redis' own clock, then the fields as they came.  Published is
-- "<user> <result>".  A result that says success stays; a buyer with an order of
-- another purchase hears of that one.
--
-- Returns a digit for each entry: 1 buried; 0 it is not pending any more, for it
-- was buried by a call whose answer got lost, or by a second daemon of the same
-- name, and nothing is done; 2 it has a letter and was delivered again, for the
-- group was lost: the letter stays the only one.
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own.  Types and arguments
-- are proved before the first write; what Redis refuses without memory comes
-- first.  What fails after that does not keep the others from being buried: it
-- stays pending, and the first error is returned when all is done.

local PER = 9       -- arguments of an entry before its own fields
local CHUNK = 4096  -- fields of a letter that one unpack() takes
local PAGE = 100    -- letters that are looked at in one step
local PAGES = 50    -- of them, at most: Redis stands still meanwhile

local call, find = redis.call, string.find
local orders, dead, group, channel = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local entries = #KEYS - 2

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

local function is_number(text)
  return #text <= 15 and find(text, "^%d+$")
end

local function is_u64(text)
  return (text == "0" or find(text, "^[1-9]%d*$"))
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

-- the milliseconds of an id go to 2^64 - 1, and so are never a number
local function is_older(ms, other)
  return #ms < #other or (#ms == #other and ms < other)
end

local function succeeded(text)
  local ok, value = pcall(cjson.decode, text)
  return ok and type(value) == "table" and value.success == true
end

-- Which of these entries have a letter; it is younger than its entry, unless
-- that has an id of the future.
local function find_letters(wanted, first_ms, now_ms)
  local found, from = {}, is_older(now_ms, first_ms) and "-" or first_ms

  for _ = 1, PAGES do
    local letters = call("XRANGE", dead, from, "+", "COUNT", PAGE)
    for _, letter in ipairs(letters) do
      local fields = letter[2]
      if fields[1] == "entry" and wanted[fields[2]] then
        found[fields[2]] = true
      end
    end
    if #letters < PAGE then
      break
    end
    from = "(" .. letters[#letters][1]
  end
  return found
end

if entries < 1 or #ARGV < 2 + PER then
  return refuse("dead takes two keys, and a key and nine arguments per entry")
end

call("XLEN", orders)
call("XLEN", dead)

local time = call("TIME")
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local buried, at, verdicts, wanted = {}, 3, {}, {}
local first_ms = "18446744073709551615"

for i = 1, entries do
  local id, user, result, fields = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 8]

  local ms, n = string.match(id or "", "^(%d+)%-(%d+)$")

  if not (fields and ms and is_u64(ms) and is_u64(n)) then
    return refuse("entry id is not one of a stream")
  end
  if not (is_number(ARGV[at + 4]) and is_number(ARGV[at + 7]) and is_number(fields)) then
    return refuse("attempts, age or number of fields is bad")
  end
  fields = tonumber(fields)
  if fields % 2 ~= 0 or at + PER + fields - 1 > #ARGV then
    return refuse("fields are missing")
  end
  if user ~= "" then
    if user == "0" or not is_u64(user) then
      return refuse("user is not an id")
    end
    if not (find(result, '^{"success":false,"reason":"[a-z_]+"}$')
            or find(result, '^{"success":true,"order_id":%d+,"order_no":"%d+"}$')) then
      return refuse("result is not a result")
    end
  end

  verdicts[i] = "0"
  if #call("XPENDING", orders, group, id, id, 1) > 0 then
    local old = user ~= "" and call("GET", KEYS[i + 2])
    local keep = old and succeeded(old)
    wanted[id], first_ms = true, is_older(ms, first_ms) and ms or first_ms
    buried[#buried + 1] = {
      i = i, id = id, at = at, fields = fields, user = user, key = KEYS[i + 2], said = keep and old or result,
      write = user ~= "" and not keep
    }
  end
  at = at + PER + fields
end

if at ~= #ARGV + 1 then
  return refuse("too many arguments")
end

local found = #buried > 0 and find_letters(wanted, first_ms, string.format("%d", now_ms))

for _, it in ipairs(buried) do
  verdicts[it.i] = found[it.id] and "2" or "1"
end

local trouble
local function did(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err then
    trouble = trouble or reply.err
    return false
  end
  return true
end

for _, it in ipairs(buried) do
  local letter = {
    "entry", it.id, "reason", ARGV[it.at + 3], "attempts", ARGV[it.at + 4],
    "first_error", ARGV[it.at + 5], "last_error", ARGV[it.at + 6],
    "first_ms", string.format("%d", now_ms - tonumber(ARGV[it.at + 7])),
    "dead_ms", string.format("%d", now_ms)
  }
  local head = #letter
  for i = 1, math.min(it.fields, CHUNK) do
    letter[head + i] = ARGV[it.at + PER + i - 1]
  end
  it.written = found[it.id] or did("XADD", dead, "*", unpack(letter))
end

for _, it in ipairs(buried) do
  local done = it.written
  if done and it.write then
    done = did("SET", it.key, it.said, "KEEPTTL")
  end
  if done and it.user ~= "" then
    done = did("PUBLISH", channel, it.user .. " " .. it.said)
  end
  if done then
    did("XACK", orders, group, it.id)
  end
end

if trouble then
  return refuse("not all could be buried: " .. trouble)
end
return table.concat(verdicts)

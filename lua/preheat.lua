-- Put a sale into Redis before it starts; a sale that runs is never touched.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set; may be left out
-- ARGV late "0" or "1", product_id, price, stock_limit, start_ms, end_ms,
--      max_quantity, eligible "0" or "1", epoch, and "dry" or nothing: it answers
--      as it would, and changes nothing, nor would Redis refuse the writes now
--
-- Returns { status, epoch, rev, now_ms, stock left }; status is
--   created    was not there
--   unchanged  is there just so
--   updated    was there, not started by Redis TIME, nobody bought: the facts
--              are the new ones, what was lost is whole again, rev is one more
--   started    refused: it has started, somebody bought, or it is settled or lost
--   late       refused: it would start at once, and late is "0"
-- Refusals write nothing; for a sale that is not there their numbers are 0.
--
-- buyers_extra is 0: nobody bought, so the buyers are as many as seq says.
-- eligible_had becomes "1" when a sale by registration has members.
--
-- Errors: "SECKILL ..." for bad arguments, keys of a wrong type, keys left over
-- from another life, and an epoch older than the one that is there; and Redis'
-- own.  All is proved before the first write.

local GROUP = "seckilld"

local call = redis.call
local facts, stock, buyers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local late, product_id, price, stock_limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local start_ms, end_ms, max_quantity = ARGV[5], ARGV[6], ARGV[7]
local eligible, epoch, dry = ARGV[8], ARGV[9], ARGV[10]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly, as admit.lua wants it
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

local function is_id(text)
  return string.find(text, "^[1-9]%d*$")
         and (#text < 20 or (#text == 20 and text <= "18446744073709551615"))
end

local function is_flag(text)
  return text == "0" or text == "1"
end

if #KEYS < 4 or #KEYS > 5 or #ARGV ~= (dry == "dry" and 10 or 9) then
  return refuse("preheat takes four or five keys and nine arguments, and maybe dry")
end
if not (is_flag(late) and is_flag(eligible)) then
  return refuse("late and eligible are 0 or 1")
end
if not is_id(product_id) then
  return refuse("product_id is not an id")
end
if not (string.find(price, "^%d+%.%d%d$") or string.find(price, "^%d+$")) then
  return refuse("price is not an amount")
end
if not number(stock_limit) then
  return refuse("stock_limit is not a number")
end
if not (number(start_ms) and number(end_ms)) or number(start_ms) >= number(end_ms) then
  return refuse("the window is not from start_ms to a later end_ms")
end
if (number(max_quantity) or 0) < 1 or (number(epoch) or 0) < 1 then
  return refuse("max_quantity and epoch are numbers from 1 on")
end

-- what is there

local function type_of(key)
  return call("TYPE", key).ok
end

local types = { "hash", "string", "set", "stream", "set" }
local there = {}
for i, key in ipairs(KEYS) do
  local found = type_of(key)
  there[i] = found ~= "none"
  if there[i] and found ~= types[i] then
    return refuse(key .. " is a " .. found .. ", not a " .. types[i])
  end
end

local time = call("TIME")
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local starts_at_once = number(start_ms) <= now_ms

local function group_exists()
  for _, group in ipairs(there[4] and call("XINFO", "GROUPS", orders) or {}) do
    -- a flat list of names and values
    for i = 1, #group, 2 do
      if group[i] == "name" and group[i + 1] == GROUP then
        return true
      end
    end
  end
  return false
end

local given = { "product_id", product_id, "price", price, "stock_limit", stock_limit,
                "start_ms", start_ms, "end_ms", end_ms, "max_quantity", max_quantity,
                "eligible", eligible, "epoch", epoch }

-- no facts that nodes tell apart by rev; a set with members is there, one without is not
local kept = { "buyers_extra", "0" }
if eligible == "1" and there[5] then
  kept[#kept + 1] = "eligible_had"
  kept[#kept + 1] = "1"
end

-- Why Redis would refuse to write, or nil.  The probes are writes that change nothing.
local function refusal(rev)
  local probe, err

  if rev then
    probe = redis.pcall("HSET", facts, "rev", rev)
  else
    probe = redis.pcall("XADD", orders, "NOMKSTREAM", "*", "v", "1")
  end
  err = type(probe) == "table" and probe.err
  if err and (rev or string.find(err, "OOM", 1, true) or string.find(err, "MISCONF", 1, true)
              or string.find(err, "READONLY", 1, true)
              or string.find(err, "NOREPLICAS", 1, true)) then
    return probe
  end

  -- before 7.0 rights can't be asked for
  if redis.acl_check_cmd
     and not (redis.acl_check_cmd("SET", stock, stock_limit)
              and redis.acl_check_cmd("HSET", facts, "rev", "1")
              and redis.acl_check_cmd("XGROUP", "CREATE", orders, GROUP, "0", "MKSTREAM")) then
    return refuse("NOPERM for SET, HSET or XGROUP CREATE on the sale's keys")
  end
end

-- the group reads from 0: what was sold before the daemon's first start counts
local function write(rev, ...)
  if not group_exists() then
    call("XGROUP", "CREATE", orders, GROUP, "0", "MKSTREAM")
  end
  call("SET", stock, stock_limit)
  call("HSET", facts, "rev", rev, ...)
  call("HSET", facts, unpack(given))
  call("HSET", facts, unpack(kept))
end

if not there[1] then
  for i = 2, 4 do
    if there[i] then
      return refuse(KEYS[i] .. " is left over: the activity's hash is gone, but not this")
    end
  end
  if starts_at_once and late == "0" then
    return { "late", 0, 0, now_ms, 0 }
  end

  if dry then
    local no = refusal()
    if no then
      return no
    end
  else
    write(1, "state", "open", "seq", "0")
  end
  return { "created", number(epoch), 1, now_ms, number(stock_limit) }
end

local fact = call("HMGET", facts, "start_ms", "epoch", "rev", "seq", "state")
local old_start_ms, old_epoch = number(fact[1]), number(fact[2])
local rev, seq, state = number(fact[3]), number(fact[4]), fact[5]
if not (old_start_ms and old_epoch and rev and seq and state) then
  return refuse("facts of the activity are missing or damaged")
end

local left = there[2] and number(call("GET", stock))
if there[2] and not left then
  return refuse("stock is not a number")
end

-- several proofs, because any of them may have been lost
if now_ms >= old_start_ms or state == "settled" or state == "lost" or seq > 0
   or call("SCARD", buyers) > 0 or (there[4] and call("XLEN", orders) > 0) then
  return { "started", old_epoch, rev, now_ms, left or 0 }
end

if number(epoch) < old_epoch then
  return refuse("epoch is older than the one that is there")
end

local same = left == number(stock_limit) and group_exists()
for i = 1, #given, 2 do
  same = same and call("HGET", facts, given[i]) == given[i + 1]
end
if dry then
  local no = refusal(fact[3])
  if no then
    return no
  end
end
if same then
  for i = 1, dry and 0 or #kept, 2 do
    if call("HGET", facts, kept[i]) ~= kept[i + 1] then
      call("HSET", facts, kept[i], kept[i + 1])
    end
  end
  return { "unchanged", old_epoch, rev, now_ms, left }
end
if starts_at_once and late == "0" then
  return { "late", old_epoch, rev, now_ms, left or 0 }
end

if not dry then
  write(rev + 1)
end
return { "updated", number(epoch), rev + 1, now_ms, number(stock_limit) }

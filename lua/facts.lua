-- What Redis holds of a sale at one instant, and whether it is whole; writes nothing.
--
-- KEYS[1] activity, hash   KEYS[2] stock, string   KEYS[3] order_users, set
-- KEYS[4] orders, stream   KEYS[5] eligible, set
-- ARGV[1] a user, or nothing
--
-- Returns { status, facts, stock, buyers, member }; status is
--   whole    everything that the sale needs is there
--   stock, order_users, orders, eligible   this is missing, of another type, or
--            holds fewer than it must; the first of them
--   damaged  the facts are not a hash, or seq or buyers_extra are no numbers; or
--            they are gone, and other keys of the sale are there
--   none     there is nothing of such a sale
-- facts: one value for each of NAMES, nil where there is none, and of a value
-- that is too long its length, as an integer; the same for stock.  buyers: how
-- many are in order_users.  member: 1 when the user is in there.
--
-- Nothing that is long comes back: one monstrous value must not fail the reads
-- of others on the same connection.
--
-- Errors: Redis' own.

local LONGEST = 64

local NAMES = { "product_id", "price", "start_ms", "end_ms", "state", "max_quantity",
                "epoch", "rev", "seq", "limit", "limit_burst", "eligible", "stock_limit",
                "buyers_extra", "eligible_had", "expire_ms", "restocked", "released" }

local call, find = redis.call, string.find
local key, stock, buyers, orders, eligible = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

if #KEYS ~= 5 or #ARGV > 1 then
  return redis.error_reply("SECKILL facts takes five keys and a user at most")
end

local function is(what, name)
  return call("TYPE", name).ok == what
end

-- a decimal that a double holds exactly, or nil
local function number(text)
  if type(text) == "string" and #text <= 15
     and (text == "0" or find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

local bought, member = 0, 0
if is("set", buyers) then
  bought = call("SCARD", buyers)
  member = ARGV[1] and call("SISMEMBER", buyers, ARGV[1]) or 0
end

local fields = redis.pcall("HLEN", key)
if type(fields) == "table" then
  if find(fields.err, "WRONGTYPE", 1, true) then
    return { "damaged", {}, false, bought, member }
  end
  return fields
end
if fields == 0 then
  -- registered users may be loaded long before a sale
  local rest = call("EXISTS", stock, buyers, orders)
  return { rest > 0 and "damaged" or "none", {}, false, bought, member }
end

-- lengths first: what is too long is not even copied
local facts, short, at = {}, {}, {}
for i, name in ipairs(NAMES) do
  local length = call("HSTRLEN", key, name)
  facts[i] = length > LONGEST and length
  if length <= LONGEST then
    short[#short + 1] = name
    at[#at + 1] = i
  end
end

local fact = {}
if #short > 0 then
  for i, value in ipairs(call("HMGET", key, unpack(short))) do
    facts[at[i]] = value
    fact[short[i]] = value or nil
  end
end

local left = false
if is("string", stock) then
  left = call("GETRANGE", stock, 0, LONGEST)
  if #left > LONGEST then
    left = #left
  end
end

-- an order_users without a member is none; a missing buyers_extra is not judged

local seq, extra = number(fact.seq), fact.buyers_extra
local extra_there = facts[14] ~= false
if extra then
  extra = number((string.gsub(extra, "^%-", ""))) and tonumber(extra)
end

local function judge()
  if not seq or (extra_there and not extra) then
    return "damaged"
  end
  if not left then
    return "stock"
  end
  local must = seq + (extra or 0)
  if (extra and bought < must) or (must > 0 and bought == 0) then
    return "order_users"
  end
  if not is("stream", orders) then
    return "orders"
  end
  if fact.eligible == "1" and fact.eligible_had == "1"
     and not (is("set", eligible) and call("SCARD", eligible) > 0) then
    return "eligible"
  end
  return "whole"
end

return { judge(), facts, left, bought, member }

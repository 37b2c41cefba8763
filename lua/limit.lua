-- Set how often a user may buy, in one sale or in all, in place of what nginx is
-- configured with; or take that back.
--
-- KEYS[1] activity, hash, or control, hash
-- ARGV[1] "activity" or "control": what the key is
-- ARGV[2] "1r/s".."1000r/s", "1r/m".."1000r/m", "off": no limit; "default": what
--         is next in line.  The activity's own beats that of control, which beats nginx'.
-- ARGV[3] burst, 0..1000
--
-- Returns { status, rev, rate, burst }: the last two are what was there before,
-- "" and "" for none; status is
--   set        rev was raised
--   unchanged  it is that already
--   refused    the sale is settled
--   missing    there is no such hash; rev is 0
-- As in switch.lua, rev of the control hash is for the caller to raise, last.
--
-- Errors: "SECKILL ..." for bad arguments and damaged facts, and Redis' own.
-- All is proved before the first write.

local call, find = redis.call, string.find
local key, what, rate, burst = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

local function refuse(why)
  return redis.error_reply("SECKILL " .. why)
end

-- as src/shared/sk_limit.c reads it
local function is_number(text, min)
  return #text <= 4 and (text == "0" or find(text, "^[1-9]%d*$"))
         and tonumber(text) >= min and tonumber(text) <= 1000
end

local function is_rate(text)
  local _, _, number = find(text, "^(%d+)r/[sm]$")
  return number and is_number(number, 1)
end

if #KEYS ~= 1 or #ARGV ~= 3 or not (what == "activity" or what == "control") then
  return refuse("limit takes a key, \"activity\" or \"control\", a rate and a burst")
end

local plain = rate == "off" or rate == "default"
if not (plain or is_rate(rate)) then
  return refuse("rate is not 1r/s..1000r/s, 1r/m..1000r/m, off or default")
end
if not is_number(burst, 0) or (plain and burst ~= "0") then
  return refuse("burst is not 0..1000, or is given without a rate")
end

if call("EXISTS", key) == 0 then
  return { "missing", 0, "", "" }
end

local hash = call("HMGET", key, "state", "rev", "limit", "limit_burst")
local state, rev = hash[1], hash[2]
local old_rate, old_burst = hash[3] or "", hash[4] or ""
if not (state or what == "control") or not rev or #rev > 15 or not find(rev, "^%d+$") then
  return refuse("state or rev of \"" .. key .. "\" is missing or damaged")
end
rev = tonumber(rev)

if state == "settled" then
  return { "refused", rev, old_rate, old_burst }
end

if rate == "default" then
  if old_rate == "" and old_burst == "" then
    return { "unchanged", rev, "", "" }
  end
elseif old_rate == rate and old_burst == burst then
  return { "unchanged", rev, old_rate, old_burst }
end

-- the rev first: raised without a change it does no harm
if what == "activity" then
  rev = rev + 1
  call("HSET", key, "rev", rev)
end
if rate == "default" then
  call("HDEL", key, "limit", "limit_burst")
else
  call("HSET", key, "limit", rate, "limit_burst", burst)
end
return { "set", rev, old_rate, old_burst }

-- Which of these entries does the group still hold as pending, just as they were
-- read?  Writes nothing.
--
-- KEYS[1] orders, stream
-- ARGV[1] group, then for each entry: its id, user, epoch, seq
--
-- Returns a digit for each: 1 it is pending and says the same, 0 it is not.  A
-- server that lost the entry may have given its id to another purchase.
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own, NOGROUP among them.

local call = redis.call
local orders, group = KEYS[1], ARGV[1]

if #KEYS ~= 1 or #ARGV < 5 or (#ARGV - 1) % 4 ~= 0 then
  return redis.error_reply("SECKILL held takes a key, a group and four arguments per entry")
end

local function same(fields, i)
  local want, found = { user = ARGV[i + 1], epoch = ARGV[i + 2], seq = ARGV[i + 3] }, 0
  for k = 1, #fields, 2 do
    if want[fields[k]] then
      if want[fields[k]] ~= fields[k + 1] then
        return false
      end
      found = found + 1
    end
  end
  return found == 3
end

local held = {}

for i = 2, #ARGV, 4 do
  local id, yes = ARGV[i], false
  if #call("XPENDING", orders, group, id, id, 1) > 0 then
    local entries = call("XRANGE", orders, id, id)
    yes = #entries > 0 and same(entries[1][2], i)
  end
  held[#held + 1] = yes and "1" or "0"
end

return table.concat(held)

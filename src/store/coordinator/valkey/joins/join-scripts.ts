import { scriptOf } from "../connection/valkey-connection.ts";

/**
 * KEYS: the claim. ARGV: process, digest, how long a claim lasts in ms. An owner that claims again
 * has released the claim, but the release was lost.
 */
export const claimScript = scriptOf(
  "claim",
  `
local owner, digest, unsaved = unpack(redis.call('HMGET', KEYS[1], 'owner', 'digest', 'unsaved'))
if not owner or owner == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'digest', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return 'owner'
end
if digest ~= ARGV[2] then return 'reused' end
return unsaved and 'unsaved' or 'wait'
`,
);

/** Ends a claim of this process. ARGV: process, channel, id. */
export const releaseScript = scriptOf(
  "release",
  `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** Marks a claim of this process. ARGV: process, channel, id. */
export const unsavedScript = scriptOf(
  "unsaved",
  `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'unsaved', '1')
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/**
 * Prolongs a claim of this process, or makes it again when the server has lost it. ARGV: process,
 * digest, how long it lasts in ms, whether its answer is unsaved (1 or empty).
 */
export const renewScript = scriptOf(
  "renew",
  `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return 0 end
if not owner then redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'digest', ARGV[2]) end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'unsaved', '1') end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
);

/** Whether a wait for this claim goes on. */
export const lookScript = scriptOf(
  "look",
  `
local owner, unsaved = unpack(redis.call('HMGET', KEYS[1], 'owner', 'unsaved'))
return (owner and not unsaved) and 1 or 0
`,
);

export const joinScripts = [claimScript, releaseScript, unsavedScript, renewScript, lookScript];

import type { SlotStore } from "../../slots.ts";
import type { ValkeyClient, ValkeyScript } from "./client.ts";
import { shardOf } from "./scopes.ts";
import type { Trust } from "./trust.ts";

/** How long a process that got too few counts among those that want some, unless it asks again. */
const wantMs = 100;
const lifeMs = 10_000;

/**
 * One hash for each bound: how many slots each process has, until when, and until when it wants
 * more. So a process that died gives them back by itself, and a wish that is sent twice counts once.
 */
export const slotScript: ValkeyScript = {
  name: "slots",
  text: `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local process, limit = ARGV[1], tonumber(ARGV[2])
local held, more, life = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local all, others, wanting = redis.pcall('HGETALL', KEYS[1]), 0, 0
if all.err then
  redis.call('DEL', KEYS[1])
  all = {}
end
for i = 1, #all, 2 do
  local count, ends, wants = string.match(all[i + 1], '^(%d+):(%d+):(%d+)$')
  if not count or tonumber(ends) <= now then redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= process then
    others = others + count
    if tonumber(wants) > now then wanting = wanting + 1 end
  end
end
local granted = math.max(0, math.min(more, limit - others - held))
local wants = granted < more and now + ${wantMs} or 0
if held + granted + wants == 0 then
  redis.call('HDEL', KEYS[1], process)
else
  local own = string.format('%d:%.0f:%.0f', held + granted, now + life, wants)
  redis.call('HSET', KEYS[1], process, own)
  redis.call('PEXPIRE', KEYS[1], 2 * life)
end
return { granted, wanting == 0 and -1 or math.max(1, math.floor(limit / (wanting + 1))) }
`,
};

export interface ValkeySlotsOptions {
  readonly client: Pick<ValkeyClient, "run" | "shards">;
  readonly trust: Trust;
  readonly process: string;
  readonly processes: () => number;
}

/** Slots that all processes share in Valkey. */
export function valkeySlots({ client, trust, process, processes }: ValkeySlotsOptions): SlotStore {
  return {
    lifeMs,
    get decides() {
      return trust.decides;
    },
    get processes() {
      return processes();
    },
    async take({ bound, limit, held, more }) {
      const key = `sluice:{${shardOf(bound, client.shards)}}:slots:${bound}`;
      const reply = await client.run(slotScript, [key], [process, limit, held, more, lifeMs]);
      const answer: readonly unknown[] = Array.isArray(reply) ? reply : [];
      const [granted, fair] = answer;
      if (typeof granted !== "number" || typeof fair !== "number") {
        throw new TypeError("Valkey has not answered with slots");
      }
      return { granted, fair: fair < 0 ? Infinity : fair };
    },
  };
}

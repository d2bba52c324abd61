import { idempotencyOption } from "../resources/change-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { UsageError } from "../command.ts";
import { formatDuration } from "../duration.ts";
import { pathOf } from "../resources/find-entity.ts";
import { showNewSecret, warnOfStatus } from "./keys-change.ts";
import { keyEntity } from "./keys-list.ts";
import { formatValue, readPart, readRecord } from "../output/reply-fields.ts";
import { defineVerb } from "../verb.ts";

export const rotateKeyVerb = defineVerb({
  name: "rotate",
  takes: keyEntity.takes,
  summary: "give a key a new secret; the old one works on for a while",
  options: {
    overlap: { type: "string", value: "24h|0s|7d", about: "how long the old secret works (24h)" },
    compromised: { type: "boolean", about: "the old secret is known to others: it ends now" },
    ...idempotencyOption,
  },
  examples: [
    "keys rotate key_0123456789abcdef",
    "keys rotate sk-slc_1a2B3c4D --overlap 7d > new-key",
    "keys rotate sk-slc_1a2B3c4D --compromised",
  ],
  async run(call) {
    const { args, client, io } = call;
    const body = readBody(args.durationMs("overlap"), args.flag("compromised"));
    const found = await keyEntity.find(call);
    const path = `${pathOf(keyEntity.path, found)}/rotate`;
    const idempotencyKey = args.text("idempotency-key");
    const answer = readRecord(await client.request("POST", path, { body, idempotencyKey }));
    showNewSecret(call, answer);
    if (call.isJson) return exitCodes.ok;
    io.report(`${keyEntity.title(found)} has a new secret, which works at once. Keep it now.`);
    const ended = formatValue(answer["ended"]);
    if (ended !== "-") io.report(`Ended now: ${ended}`);
    const until = answer["overlap_until"];
    if (typeof until === "string") {
      const left = formatDuration(Date.parse(until) - io.clock.now());
      io.report(`The secret of before works until ${formatValue(until)} UTC, in ${left}.`);
    }
    warnOfStatus(call, readPart(answer, "key") ?? {});
    return exitCodes.ok;
  },
});

function readBody(overlapMs: number | undefined, compromised: boolean): Record<string, unknown> {
  if (overlapMs === undefined) return { compromised };
  if (compromised) throw new UsageError("--compromised ends the old secret now: no --overlap");
  if (overlapMs > 7 * 86_400_000) throw new UsageError("--overlap may be 7d at most");
  return { compromised, overlap_seconds: overlapMs / 1000 };
}

import type { Arguments } from "./arguments.ts";
import { UsageError, type CommandIo } from "./command.ts";
import { readDurationMs } from "./duration.ts";

export const timeOptions = {
  since: { type: "string", value: "24h|TIME", about: "how far back, or from when" },
  until: { type: "string", value: "1h|TIME", about: "how far back, or until when (default: now)" },
} as const;

/** The two ends of a time as ISO times: a duration counts back from now. */
export function readTimeRange(
  args: Arguments<keyof typeof timeOptions>,
  io: CommandIo,
): { readonly since: string | undefined; readonly until: string | undefined } {
  const since = readPast("since", args, io);
  const until = readPast("until", args, io);
  if (since !== undefined && until !== undefined && since >= until) {
    throw new UsageError("--since must be before --until");
  }
  return { since, until };
}

function readPast(
  name: keyof typeof timeOptions,
  args: Arguments<keyof typeof timeOptions>,
  io: CommandIo,
): string | undefined {
  const now = io.clock.now();
  const durationMs = readDurationMs(args.text(name) ?? "");
  if (durationMs !== undefined) return new Date(now - durationMs).toISOString();
  return args.time(name, now);
}

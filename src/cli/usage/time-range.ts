import type { Arguments } from "../arguments.ts";
import { UsageError, type CommandIo } from "../command.ts";

export const timeOptions = {
  since: {
    type: "string",
    value: "24h|TIME",
    about: "how far back, or from when: a date or time of UTC",
  },
  until: { type: "string", value: "1h|TIME", about: "how far back, or until when (default: now)" },
} as const;

/** The two ends of a time as ISO times: a duration counts back from now. */
export function readTimeRange(
  args: Arguments<keyof typeof timeOptions>,
  io: CommandIo,
): { readonly since: string | undefined; readonly until: string | undefined } {
  const now = io.clock.now();
  const since = args.pastTime("since", now);
  const until = args.pastTime("until", now);
  if (since !== undefined && until !== undefined && since >= until) {
    throw new UsageError("--since must be before --until");
  }
  return { since, until };
}

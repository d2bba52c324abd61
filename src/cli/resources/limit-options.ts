import type { Arguments } from "../arguments.ts";
import { UsageError } from "../command.ts";

/** Both options together; `about` says whose limits they are. */
export function limitOptions(about: string) {
  return {
    "requests-per-minute": {
      type: "string",
      value: "N",
      about: `${about}; with --tokens-per-minute`,
    },
    "tokens-per-minute": { type: "string", value: "N", about: "with --requests-per-minute" },
  } as const;
}

/** As the body of a request has them; undefined when neither option is given. */
export function readLimits(
  args: Pick<Arguments<keyof ReturnType<typeof limitOptions>>, "count">,
): object | undefined {
  const requests = args.count("requests-per-minute");
  const tokens = args.count("tokens-per-minute");
  if (requests === undefined && tokens === undefined) return undefined;
  if (requests === undefined || tokens === undefined || requests === 0 || tokens === 0) {
    throw new UsageError(
      "--requests-per-minute and --tokens-per-minute go together and are above 0",
    );
  }
  return { requests_per_minute: requests, tokens_per_minute: tokens };
}

import type { UpstreamFailureKind } from "../../domain/upstream-failure.ts";

/** What an operator has to change, where the provider's exception and words tell; for the log. */
export function hintFor(
  kind: UpstreamFailureKind,
  { shortName, message }: { readonly shortName: string | undefined; readonly message: string },
): string | undefined {
  switch (kind) {
    case "unknown-model":
      return modelHints.find(([text]) => text.test(message))?.[1] ?? usualModelHint;
    case "bad-credential":
      return shortName === "accessdenied" ? accessHint : credentialHint;
    case "stale-credential":
      return credentialHint;
    default:
      return undefined;
  }
}

const modelHints: readonly (readonly [RegExp, string])[] = [
  [
    /on-demand throughput/i,
    "the model is reached through an inference profile only: put us., eu., apac. or global. " +
      "before the target's identifier, or use a profile's ARN",
  ],
  [/end of its life|marked by provider as Legacy/i, "the model is retired: choose a newer one"],
  [/guardrail/i, "check identifier, version and region of the target's guardrail"],
];
const usualModelHint =
  "check the target's identifier, its region and that the model is offered there";
const accessHint =
  "request access to the model in the provider's console, or allow bedrock:InvokeModel and " +
  "bedrock:InvokeModelWithResponseStream on it and on its inference profile";
const credentialHint =
  "the credential is wrong, expired or of another account, or the clock is off by minutes";

import type { UpstreamFailureKind } from "../../../domain/errors/failure-kind.ts";

/** What an operator has to change, if the provider's exception and message show it; for the log. */
export function hintFor(
  kind: UpstreamFailureKind,
  { shortName, message }: { readonly shortName: string | undefined; readonly message: string },
): string | undefined {
  switch (kind) {
    case "unknown-model":
      return modelHints.find(([text]) => text.test(message))?.[1] ?? usualModelHint;
    case "bad-credential":
    case "account-blocked":
      return accessHints.find(([text]) => text.test(message))?.[1] ?? usualAccessHint(shortName);
    case "stale-credential":
      return credentialHint;
    default:
      return undefined;
  }
}

const formHint = "fill out the form of use cases for the model in the provider's console";
const modelHints: readonly (readonly [RegExp, string])[] = [
  [
    /on-demand throughput/i,
    "the model is reached through an inference profile only: put us., eu., apac. or global. " +
      "before the target's identifier, or use a profile's ARN",
  ],
  [/end of its life|marked by provider as Legacy/i, "the model is retired: choose a newer one"],
  [/use case details/i, formHint],
  [/guardrail/i, "check identifier, version and region of the target's guardrail"],
];
const usualModelHint =
  "check the target's identifier, its region and that the model is offered there";
const accessHints: readonly (readonly [RegExp, string])[] = [
  [
    /aws-marketplace|marketplace subscription/i,
    "the account has no subscription to the model: let an administrator open access to it in the " +
      "provider's console once, or allow aws-marketplace:Subscribe and ViewSubscriptions",
  ],
  [/payment.instrument/i, "the account has no valid means of payment for the model"],
  [/use case details/i, formHint],
  [
    /channel program|unsupported countries/i,
    "the provider does not offer the model to this account: choose another model or account",
  ],
  [/data retention/i, "the model asks for another data retention mode than the account's"],
  [
    /operation not allowed|\baccount\b/i,
    "the account may not call the model in this region: request access to it there; where that is " +
      "granted, ask the provider's support, since the account itself may be held back",
  ],
];

/** Only callers whose signature was accepted get `ValidationException`. */
function usualAccessHint(shortName: string | undefined): string {
  return shortName === "accessdenied" || shortName === "validation" ? accessHint : credentialHint;
}

const accessHint =
  "request access to the model in the provider's console, or allow bedrock:InvokeModel and " +
  "bedrock:InvokeModelWithResponseStream on it and on its inference profile";
const credentialHint =
  "the credential is wrong, expired or of another account, or the clock is off by minutes";

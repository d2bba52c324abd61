import { demoApiKey, demoCredentials } from "./bedrock/credentials.ts";
import { faultListing } from "./faults/fault-modes.ts";
import { profiles, quirks, traits } from "./openai/profiles.ts";

function listing(meanings: Readonly<Record<string, string>>): string {
  const lines = Object.entries(meanings).map(([name, about]) => `  ${name.padEnd(24)}${about}`);
  return lines.join("\n");
}

/** What a call can ask of it: faults, credentials, models, scripts. For `sluice simulator --help`. */
export function simulatorHelp(): string {
  return `
Faults, also by a model named fault-MODE[-ARGUMENT], or by the header x-simulator-fault, which
a gateway does not pass on:

${faultListing().join("\n")}

Servers of the chat wire, by --profile, or for a model named profile-NAME: ${Object.keys(profiles).join(", ")}.
Each does some of what follows, and writes errors in its own way. For one more: --quirk NAME, or a model
named quirk-NAME. The first are also names for Sluice's setting quirks:

${listing(quirks)}

${listing(traits)}

Bedrock's wire: Converse, ConverseStream, InvokeModel for embeddings, and
CountTokens, under /model/ID. Signatures are verified. Default credentials:

  access key id      ${demoCredentials.accessKeyId}
  secret access key  ${demoCredentials.secretAccessKey}
  or bearer key      ${demoApiKey}

Models are those of the provider, with their limits; ids that begin with simulated- or fault-,
and ARNs that do not name a foundation model, can do everything.

Lines of a user message that script the answer: "echo: TEXT", "count: N", "refuse: ANYTHING", and
"bulk: N", which is N pieces of 16 KiB. A script of an agent has a step for each of the model's turns:
steps: [{"tool":"Read","input":{"file_path":"a.txt"}},{"text":"Done."}] end of steps
With a guardrail on Bedrock's wire, "guard: ANYTHING" is blocked.
GET /truth lists what really happened to each call; DELETE /truth clears the list.`;
}

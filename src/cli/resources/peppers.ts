import { exitCodes } from "../../process/exit-codes.ts";
import type { Command } from "../command.ts";
import { readRecords, readText, type ReplyRecord } from "../output/reply-fields.ts";
import { createResourceCommand } from "../resource-command.ts";
import { formatRecords } from "../output/show-reply.ts";
import { defineVerb } from "../verb.ts";

const columns = [
  { title: "PEPPER", of: "pepper" },
  { title: "ROLE", of: "role" },
  { title: "SECRETS", of: "secrets" },
  { title: "TOKENS", of: "tokens" },
  { title: "AUDIT SEALS", of: "audit_entries" },
];

const listVerb = defineVerb({
  name: "list",
  summary: "list peppers, and what was made under each",
  examples: ["peppers list", "peppers list --offline --config sluice.yaml"],
  async run({ args, client, io, isJson }) {
    args.none();
    const answer = await client.request("GET", "/peppers");
    if (isJson) {
      io.print(JSON.stringify(answer));
      return exitCodes.ok;
    }
    const peppers = readRecords(answer, "data");
    io.print(formatRecords(columns, peppers));
    for (const pepper of peppers) {
      const advice = adviceOf(pepper, answer);
      if (advice !== undefined) io.report(advice);
    }
    return exitCodes.ok;
  },
});

export const peppersCommand: Command = createResourceCommand({
  name: "peppers",
  summary: "what hangs on which pepper, such as before an old one is removed",
  about: `A pepper is changed by a new one in front of \`auth.peppers\`: the first makes what is new, all verify.
The digest of a key or token comes under the first one when it is used. SECRETS and TOKENS are the live
ones by the pepper of their digest; AUDIT SEALS need no pepper but the first. Without a verb: the list.`,
  verbs: [listVerb],
  defaultVerb: "list",
});

function adviceOf(pepper: ReplyRecord, answer: unknown): string | undefined {
  const { role, secrets, tokens } = pepper;
  const mark = readText(pepper, "pepper");
  if (role === "first") return undefined;
  const needing = Number(secrets) + Number(tokens);
  if (role === "not_configured") {
    if (needing === 0) return undefined;
    return `Warning: ${mark} is not configured, so ${needing} secrets and tokens do not work.`;
  }
  if (needing > 0) {
    return `${mark} is needed: ${needing} secrets and tokens were not used since. Rotate or revoke them, or keep it.`;
  }
  const kept = keptAnswers(answer);
  return kept > 0
    ? `${mark} is needed for ${kept} kept answers, which go within a day of the rotation.`
    : `${mark} is needed no more: remove it from auth.peppers.`;
}

function keptAnswers(answer: unknown): number {
  if (typeof answer !== "object" || answer === null || !("kept_answers" in answer)) return 0;
  return Number(answer.kept_answers);
}

import { switches, type VerbCall } from "../verbs/verb.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import {
  cellOf,
  formatValue,
  readPart,
  readRecord,
  readRecords,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { exitCodes } from "../../process/program.ts";
import { receiptNotes } from "./receipt.ts";
import { showKeyLive } from "./live.ts";
import { entities, findEntity, readSecretName, titleOf } from "../verbs/entities.ts";
import { CommandError } from "../command.ts";
import { readChunks } from "../read-input.ts";
import { showAnswer } from "../verbs/run-verb.ts";
import { apiKeyPattern } from "../../domain/keys/api-key.ts";
import { formatDuration } from "../duration.ts";

export const keys: ResourceSpec = {
  name: "keys",
  example: "key_0123456789abcdef",
  about:
    "A key has a plan, limits and usage. It has one live secret, or two during a rotation. A " +
    "secret is printed once, alone on standard output; only its digest is stored.",
  verbs: [
    {
      name: "create",
      operation: "createKey",
      summary: "Issue a key to an application",
      show: showIssuedKey,
      examples: [
        "keys create --application search --plan standard",
        'keys create --application search --plan standard --name "night batch"',
        "keys create --application search --plan standard --models alpha-sonnet-4 --expires 90d",
        "keys create --application app_0123456789abcdef --plan enterprise " +
          "--requests-per-minute 5000 --tokens-per-minute 10000000",
      ],
    },
    {
      name: "list",
      operation: "listKeys",
      columns: [
        "id",
        "name",
        { title: "SECRETS", of: formatLiveSecrets },
        "application",
        "environment",
        "plan",
        "status",
        "created_at",
        "expires_at",
      ],
      whenEmpty: "No keys found.",
      examples: ["keys list", "keys list --application search --status active"],
    },
    { name: "show", operation: "getKey" },
    { name: "live", operation: "getKeyLive", show: showKeyLive },
    {
      name: "update",
      operation: "updateKey",
      texts: { limits: { noneFlag: "plan-limits" } },
      examples: [
        "keys update sk-slc_1a2B3c4D --networks 10.0.0.0/8,192.0.2.7",
        "keys update key_0123456789abcdef --plan pro --plan-limits --expires never",
        "keys update key_0123456789abcdef --provisioned-units 20 --provisioned-pool main",
      ],
    },
    {
      name: "rotate",
      operation: "rotateKey",
      summary: "Give a key a new secret; the old one keeps working for a while",
      conflict: ["compromised", "overlap"],
      show: showRotatedKey,
      hasReceipt: true,
      examples: [
        "keys rotate key_0123456789abcdef",
        "keys rotate sk-slc_1a2B3c4D --overlap 7d > new-key",
        "keys rotate sk-slc_1a2B3c4D --compromised",
      ],
    },
    {
      name: "end-secret",
      operation: "endSecret",
      summary: "End one of two live secrets now, such as the old one after a rotation",
      argument: "secret",
      run: endSecret,
      hasReceipt: true,
      examples: ["keys end-secret sk-slc_1a2B3c4D"],
    },
    ...switches("updateKey", {
      disable: ["Stop a key; it can be enabled again"],
      enable: ["Let a disabled key work again"],
    }),
    {
      name: "revoke",
      operation: "revokeKey",
      done: "is revoked.",
      hasReceipt: true,
    },
    {
      name: "check-leak",
      operation: "reportLeaks",
      summary: "Find keys in a text and end the live ones",
      argument: "[file]",
      only: [],
      options: [["--keep", "Only report; end nothing."]],
      columns: ["hint", "key_id", "application", "outcome"],
      run: checkLeak,
      examples: ["keys check-leak paste.txt --keep"],
    },
  ],
};

/** Ends a secret by its name, which also identifies its key. */
export async function endSecret({ argument, client, io, isJson }: VerbCall): Promise<number> {
  const secret = readSecretName(argument ?? "");
  const key = await findEntity(client, { entity: entities.key, named: secret, owners: {} });
  const path = `/keys/${readText(key, "id")}/secrets/${secret.slice("sk-slc_".length)}`;
  const answer = await client.request("DELETE", path);
  if (isJson) io.print(JSON.stringify(answer));
  else {
    const title = titleOf(entities.key, key);
    io.report(`${secret} has ended. ${title} works with its other secret.`);
    for (const note of await receiptNotes(client, readRecord(answer))) io.report(note);
  }
  return exitCodes.ok;
}

const batchSize = 1000;

/** Looks up and ends everything in a file or in piped input that looks like a key. */
async function checkLeak(call: VerbCall): Promise<number> {
  const { argument, client, io, options } = call;
  const texts = await findKeys(readChunks(argument === "-" ? undefined : argument, io));
  if (texts.length === 0) throw new CommandError("it contains no API keys");
  const disable = options["keep"] !== true;
  const data: ReplyRecord[] = [];
  for (let start = 0; start < texts.length; start += batchSize) {
    const body = { api_keys: texts.slice(start, start + batchSize), disable };
    data.push(...readRecords(await client.request("POST", "/leaks", { body }), "data"));
  }
  return showAnswer(call, { data });
}

/** Longer than any key, because a key may span two pieces. */
const overlapLength = 128;

/** Finds every distinct text in the form of an API key, in input of any size. */
export async function findKeys(chunks: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const found = new Set<string>();
  // Latin-1 preserves every byte, and keys are ASCII in text of any encoding.
  const decoder = new TextDecoder("latin1");
  let rest = "";
  for await (const chunk of chunks) {
    const text = rest + decoder.decode(chunk, { stream: true });
    for (const [key] of text.matchAll(new RegExp(apiKeyPattern, "g"))) found.add(key);
    rest = text.slice(-overlapLength);
  }
  return [...found];
}

const whenAccepted =
  "Gateways accept it within a second, unless they are cut off from the database.";

/** Prints only the new secret to standard output, so that it can be piped. */
function showIssuedKey({ io }: VerbCall, answer: ReplyRecord): void {
  io.print(readText(answer, "api_key"));
  const key = readPart(answer, "key") ?? {};
  io.report(
    `Key ${cellOf(key, "id")} for application '${cellOf(key, "application")}' ` +
      `on plan ${cellOf(key, "plan")} in ${cellOf(key, "environment")}.`,
  );
  io.report(`Store it now: it is not shown again. ${whenAccepted}`);
  warnOfStatus(io, key);
}

function showRotatedKey({ io }: VerbCall, answer: ReplyRecord): void {
  io.print(readText(answer, "api_key"));
  const key = readPart(answer, "key") ?? {};
  io.report(
    `${titleOf(entities.key, key)} has a new secret. Store it now: it is not shown again. ` +
      whenAccepted,
  );
  const ended = formatValue(answer["ended"]);
  if (ended !== "-") io.report(`Ended: ${ended}`);
  const until = answer["overlap_until"];
  if (typeof until === "string") {
    const left = formatDuration(Date.parse(until) - io.clock.now());
    io.report(`The previous secret works until ${formatValue(until)} UTC, in ${left}.`);
  }
  warnOfStatus(io, key);
}

function warnOfStatus(io: VerbCall["io"], key: ReplyRecord): void {
  const { status } = key;
  if (typeof status !== "string" || status === "active") return;
  io.report(`Warning: the key does not work: its status is ${cellOf(key, "status")}.`);
}

/** The working secrets; `keys show` lists all. */
function formatLiveSecrets(key: ReplyRecord): string {
  const live = readRecords(key, "secrets").filter(({ status }) => status === "live");
  return live.length === 0 ? "-" : live.map((secret) => readText(secret, "hint")).join(" ");
}

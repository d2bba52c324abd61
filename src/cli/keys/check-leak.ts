import { CommandError } from "../command.ts";
import { readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { readChunks } from "../read-input.ts";
import { showAnswer } from "../verbs/run-verb.ts";
import type { VerbCall } from "../verbs/verb.ts";
import { findKeys } from "./find-keys.ts";

/** Most secrets in one request of the admin API. */
const batchSize = 1000;

/** Looks up and ends everything in a file or in piped input that looks like a key. */
export async function checkLeak(call: VerbCall): Promise<number> {
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

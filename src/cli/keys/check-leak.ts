import { CommandError } from "../command.ts";
import { readRecords, type ReplyRecord } from "../output/reply-fields.ts";
import { readChunks } from "../read-input.ts";
import { showAnswer } from "../verbs/run-verb.ts";
import type { VerbCall } from "../verbs/verb.ts";
import { findKeys } from "./find-keys.ts";

/** Of the admin API, in one request. */
const batchSize = 1000;

/** What has the form of a key in a file, or in what is piped in, is looked up and ended. */
export async function checkLeak(call: VerbCall): Promise<number> {
  const { argument, client, io, options } = call;
  const texts = await findKeys(readChunks(argument === "-" ? undefined : argument, io));
  if (texts.length === 0) throw new CommandError("no text in it has the form of a key");
  const disable = options["keep"] !== true;
  const data: ReplyRecord[] = [];
  for (let start = 0; start < texts.length; start += batchSize) {
    const body = { api_keys: texts.slice(start, start + batchSize), disable };
    data.push(...readRecords(await client.request("POST", "/leaks", { body }), "data"));
  }
  return showAnswer(call, { data });
}

import { type AdminClient, AdminRefusal } from "../client/admin-client.ts";
import { exitCodes } from "../../process/program.ts";
import { CommandError, UsageError } from "../command.ts";
import { formatCall, formatRefusal, formatRouting } from "./explain-call.ts";
import { readRecord, type ReplyRecord } from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";

export const explain: ResourceSpec = {
  name: "explain",
  about:
    "Every response has its id in the header x-request-id. For a request of a key that got an " +
    "error, this shows the rule, the field at fault, and for a limit how full its window was " +
    "and when the request would have fitted. For any other call, it shows the ledger's row.",
  verbs: [
    {
      name: "explain",
      operation: "getRefusal",
      argument: "request-id",
      run: explainRequest,
      examples: ["explain req_019a4c2f7b3e5d6a8c9e0f1a2b3c4d5e"],
    },
  ],
};

async function explainRequest({ argument = "", client, io, isJson }: VerbCall): Promise<number> {
  if (!/^req_[0-9a-f]{32}$/.test(argument)) {
    throw new UsageError("a request id is req_ and 32 hexadecimal digits");
  }
  const refusal = await findOne(client, `/refusals/${argument}`);
  // A call refused because of its targets was attempted, so the ledger has its attempts.
  const found = await findCall(argument, { client, io, mayMiss: refusal !== undefined });
  if (refusal === undefined && found === undefined) throw new CommandError(unknown(client));
  const call = found ?? {};
  if (isJson) io.print(JSON.stringify({ ...call, ...refusal }));
  else if (refusal === undefined) io.print(formatCall(call));
  else io.print([formatRefusal(refusal, call), ...formatRouting(call)].join("\n"));
  return exitCodes.ok;
}

export interface CallSource {
  readonly client: Pick<AdminClient, "request">;
  readonly io: Pick<VerbCall["io"], "report">;
  readonly mayMiss: boolean;
}

/** `mayMiss`: without the database, what is known already is worth more than its failure. */
export async function findCall(
  id: string,
  { client, io, mayMiss }: CallSource,
): Promise<ReplyRecord | undefined> {
  try {
    return await findOne(client, `/usage/calls/${id}`);
  } catch (error) {
    if (!mayMiss || !(error instanceof AdminRefusal) || error.status !== 503) throw error;
    io.report("The ledger cannot be read now; if targets were tried, they are not shown.");
    return undefined;
  }
}

async function findOne(
  client: Pick<AdminClient, "request">,
  path: string,
): Promise<ReplyRecord | undefined> {
  try {
    return readRecord(await client.request("GET", path));
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 404) return undefined;
    throw error;
  }
}

function unknown({ isOffline }: AdminClient): string {
  return isOffline
    ? "no call has this id; only a running gateway knows what it refused (omit --offline)"
    : "there is no record of this request. Requests that are not calls, such as lists of models, and " +
        "errors before a key is read (404, 405, 431) are not recorded. Of each key, the last 20 errors " +
        "are kept until a restart, by the gateway that refused: ask on its machine. If the request has " +
        "just ended, try again in a second";
}

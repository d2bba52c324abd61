import { type AdminClient, AdminRefusal } from "../client/admin-client.ts";
import { exitCodes } from "../../process/program.ts";
import { CommandError, UsageError } from "../command.ts";
import { formatCall, formatRefusal, formatRouting } from "./explain-call.ts";
import { readPart, readRecord } from "../output/reply-fields.ts";
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
      operation: "explainRequest",
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
  const answer = readRecord(await ask(client, argument));
  const [refusal, found] = [readPart(answer, "refusal"), readPart(answer, "call")];
  if (answer["is_ledger_read"] === false) {
    io.report("The ledger cannot be read now; if targets were tried, they are not shown.");
  }
  const call = found ?? {};
  const isAudited = refusal?.["is_audited"] === true;
  const all = isAudited ? { ...refusal, ...call } : { ...call, ...refusal };
  if (isJson) io.print(JSON.stringify(all));
  else if (refusal === undefined) io.print(formatCall(call));
  else if (isAudited && found !== undefined) {
    io.print([formatCall(call), "", formatRefusal(refusal)].join("\n"));
  } else io.print([formatRefusal(refusal, call), ...formatRouting(call)].join("\n"));
  return exitCodes.ok;
}

async function ask(client: AdminClient, id: string): Promise<unknown> {
  try {
    return await client.request("GET", `/explain/${id}`);
  } catch (error) {
    if (!(error instanceof AdminRefusal) || error.status !== 404) throw error;
    const told = client.isOffline
      ? "no call has this id; only a running gateway knows what it refused (omit --offline)"
      : error.message;
    throw new CommandError(told);
  }
}

import { AdminRefusal, type AdminClient } from "../client/admin-client.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { CommandError, UsageError } from "../command.ts";
import { formatCall } from "./explain-call.ts";
import { formatRouting } from "./explain-routing.ts";
import { formatRefusal } from "./explain-refusal.ts";
import { readRecord, type ReplyRecord } from "../output/reply-fields.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import type { VerbCall } from "../verbs/verb.ts";

export const explain: ResourceSpec = {
  name: "explain",
  about:
    "Every answer of a gateway has its id in the header x-request-id. Of a request that the gateway " +
    "refused by its own rules, tells the rule, what the window held and when there would have been " +
    "room. Of any other call, tells what the ledger has.",
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
    throw new UsageError("a request's id is req_ and 32 hexadecimal digits");
  }
  const refusal = await findOne(client, `/refusals/${argument}`);
  // A call refused because of its targets was attempted, so the ledger has its attempts.
  const call = await findOne(client, `/usage/calls/${argument}`);
  if (refusal === undefined && call === undefined) throw new CommandError(unknown(client));
  if (isJson) io.print(JSON.stringify({ ...call, ...refusal }));
  else {
    const told = refusal === undefined ? [] : [formatRefusal(refusal)];
    const found = call === undefined ? [] : explained(call, refusal);
    io.print([...told, ...found].join("\n"));
  }
  return exitCodes.ok;
}

function explained(call: ReplyRecord, refusal: ReplyRecord | undefined): readonly string[] {
  return refusal === undefined ? [formatCall(call)] : formatRouting(call);
}

async function findOne(client: AdminClient, path: string): Promise<ReplyRecord | undefined> {
  try {
    return readRecord(await client.request("GET", path));
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 404) return undefined;
    throw error;
  }
}

function unknown({ isOffline }: AdminClient): string {
  return isOffline
    ? "no call has this id; only a running gateway remembers what it refused (leave out --offline)"
    : "nothing is known of this request: it was no call, it was refused too long ago, before the " +
        "gateway's last restart or by another gateway, or it ended just now (ask again in a second)";
}

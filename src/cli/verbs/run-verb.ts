import {
  type AdminClient,
  AdminRefusal,
  type AdminRequestDetails,
  textsOf,
} from "../client/admin-client.ts";
import { CommandError, type CommandIo, UsageError } from "../command.ts";
import { columnOf, formatRecord, formatRecords } from "../output/show-reply.ts";
import { readRecord, readRecords, readText, type ReplyRecord } from "../output/reply-fields.ts";
import { receiptNotes } from "../resources/receipt.ts";
import { askYes, readPassword } from "../read-input.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { connectLate } from "./connect-late.ts";
import { findEntity, findId, type Owners, titleOf } from "./entities.ts";
import { assemble } from "./fields.ts";
import { asksFirst, type Typed, type Verb, type VerbCall } from "./verb.ts";
import type { DescribedOperation } from "./described-operations.ts";

/** Runs a verb; resolves with the exit code. */
export async function runVerb(verb: Verb, typed: Typed, io: CommandIo): Promise<number> {
  const { spec, fields } = verb;
  const isChange = verb.operation.method === "PATCH" && spec.fixed === undefined;
  if (isChange && typed.values.size === 0) throw new UsageError("name at least one change");
  const { since, until } = assemble(fields, typed.values);
  if (typeof since === "string" && typeof until === "string" && since >= until) {
    throw new UsageError("--since must be before --until");
  }
  const values = await withPassword(typed, io);
  await using client = connectLate(typed.options, io);
  const isJson = typed.options["json"] === true;
  const call = { ...typed, values, verb, client, io, isJson };
  try {
    return await (spec.run ?? runOperation)(call);
  } catch (error) {
    throw withAdvice(error, spec);
  }
}

/** Tells what to do while the gateway cannot reach its database. */
function withAdvice(error: unknown, { hasReceipt = false }: Verb["spec"]): unknown {
  if (!(error instanceof AdminRefusal) || error.code !== "storage_unavailable") return error;
  const { status, code, message, param } = error;
  const stop = hasReceipt ? " To stop a key meanwhile, refuse it in the proxy." : "";
  const advice = "`sluice doctor` on a gateway looks for the cause.";
  return new AdminRefusal({ status, code, message: `${message} ${advice}${stop}`, param });
}

/** Reads a password before the first request, from the source that the option names. */
async function withPassword({ values }: Typed, io: CommandIo): Promise<Typed["values"]> {
  const read = new Map(values);
  for (const [field, file] of values) {
    if (field.path[0] !== "password") continue;
    read.set(field, await readPassword(file === "-" ? undefined : String(file), io));
  }
  return read;
}

async function runOperation(typed: VerbCall): Promise<number> {
  const { verb, client } = typed;
  const { spec, entity, operation } = verb;
  const owners = ownersOf(typed);
  const wanted = entity && { entity, named: typed.argument ?? "", owners };
  const found = wanted && (await findEntity(client, wanted));
  const call = { ...typed, found };
  spec.check?.(call);
  if (asksFirst(verb)) await confirm(call);
  const answer = readRecord(
    operation.method === "GET" && found !== undefined ? found : await ask(call),
  );
  if (operation.method === "GET") await requireFilters(call, answer);
  return showAnswer(call, answer);
}

/** Asks a person at a terminal before something is ended or deleted permanently. */
async function confirm({ verb, found, io, options }: VerbCall): Promise<void> {
  const { entity, spec } = verb;
  if (entity === undefined || !io.input.isTerminal || options["yes"] === true) return;
  const isSure = await askYes(`${titleOf(entity, found ?? {})}: ${spec.name} permanently?`, io);
  if (!isSure) throw new CommandError("Nothing was changed.");
}

/** An empty list may be empty because a filter names something that does not exist. */
async function requireFilters(call: VerbCall, answer: ReplyRecord): Promise<void> {
  const { data } = answer;
  if (!Array.isArray(data) || data.length > 0) return;
  for (const [{ entity }, value] of call.values) {
    if (entity === undefined || typeof value !== "string") continue;
    await findEntity(call.client, { entity, named: value, owners: ownersOf(call) });
  }
}

/** Prints an answer, for scripts or for people. */
export async function showAnswer(call: VerbCall, answer: ReplyRecord): Promise<number> {
  const { client, io, isJson, verb } = call;
  if (isJson) io.print(JSON.stringify(answer));
  else {
    show(call, answer);
    for (const note of verb.spec.notes?.(call, answer) ?? []) io.report(note);
    const receipt = verb.spec.hasReceipt === true ? await receiptNotes(client, answer) : [];
    for (const note of receipt) io.report(note);
  }
  return verb.spec.exitCode?.(answer) ?? exitCodes.ok;
}

async function ask(call: VerbCall): Promise<unknown> {
  const { verb, client, options, argument, found } = call;
  const { operation } = verb;
  const path = pathOf(
    operation.path,
    found === undefined ? (argument ?? "") : readText(found, "id"),
  );
  const fields = await readFields(call);
  if (operation.method === "GET") return readList(client, { path, operation, query: fields });
  const key = options["idempotencyKey"];
  const idempotencyKey = typeof key === "string" ? key : undefined;
  const body = bodyOf(call, fields);
  const details: AdminRequestDetails = { ...(body && { body }), idempotencyKey };
  return client.request(operation.method, path, details);
}

/** The path after `/admin/v1`, with the name in it. */
function pathOf(path: string, name: string): string {
  return path.slice("/admin/v1".length).replace(/\{\w+\}/, encodeURIComponent(name));
}

function bodyOf({ verb, argument, found }: VerbCall, fields: ReplyRecord): ReplyRecord | undefined {
  const { operation, spec, entity } = verb;
  if (operation.body === undefined) return undefined;
  const named = entity === undefined ? spec.argument : undefined;
  return {
    // With the revision that was read, a change is refused if there was a concurrent one.
    ...("revision" in operation.body.shape ? { revision: found?.["revision"] } : {}),
    ...(named === undefined ? {} : { [named]: argument }),
    ...fields,
    ...spec.fixed,
  };
}

/** The fields that were given, with ids instead of names. */
export async function readFields(call: VerbCall): Promise<ReplyRecord> {
  const values = new Map(call.values);
  const owners = ownersOf(call);
  for (const [field, value] of values) {
    const { entity } = field;
    if (entity === undefined || typeof value !== "string") continue;
    values.set(field, await findId(call.client, { entity, named: value, owners }));
  }
  return assemble(call.verb.fields, values);
}

function ownersOf({ options }: Typed): Owners {
  const { account, environment } = options;
  return {
    account: typeof account === "string" ? account : undefined,
    environment: typeof environment === "string" ? environment : undefined,
  };
}

function show(call: VerbCall, answer: ReplyRecord): void {
  const { io, verb, found } = call;
  const { spec, entity } = verb;
  if (spec.show !== undefined) spec.show(call, answer);
  else if (spec.columns !== undefined) showTable(call, answer);
  else if (spec.done !== undefined && entity !== undefined) {
    io.report(`${titleOf(entity, { ...found, ...answer })} ${spec.done}`);
  } else io.print(formatRecord(answer));
}

function showTable({ io, verb }: VerbCall, answer: ReplyRecord): void {
  const { columns = [], whenEmpty } = verb.spec;
  const records = readRecords(answer, "data");
  if (records.length > 0) io.print(formatRecords(columns.map(columnOf), records));
  else io.report(whenEmpty ?? "There are none.");
  const next = answer["next_cursor"];
  if (typeof next === "string") io.report(`There are more: --cursor ${next}`);
}

/** Most items of one page of the admin API. */
const pageLimit = 500;
const defaultLimit = 50;

interface ListRequest {
  readonly path: string;
  readonly operation: Pick<DescribedOperation, "query">;
  readonly query: ReplyRecord;
}

/** Reads the answer of a `GET`; for a list, as many pages as the requested items need. */
export async function readList(client: AdminClient, request: ListRequest): Promise<unknown> {
  const { path, operation } = request;
  const query = textsOf(request.query);
  const isPaged = "cursor" in (operation.query?.shape ?? {});
  if (!isPaged) return client.request("GET", path, { query });
  const wanted = Number(query["limit"] ?? defaultLimit);
  const data: ReplyRecord[] = [];
  let { cursor } = query;
  for (;;) {
    const limit = Math.min(wanted - data.length, pageLimit);
    const page = readRecord(
      await client.request("GET", path, { query: { ...query, limit, cursor } }),
    );
    const items = readRecords(page, "data");
    data.push(...items);
    const next = page["next_cursor"];
    if (typeof next !== "string") return { data, next_cursor: null };
    if (data.length >= wanted || items.length === 0) return { data, next_cursor: next };
    cursor = next;
  }
}

import {
  type AdminClient,
  AdminRefusal,
  type AdminRequestDetails,
  textsOf,
} from "../client/admin-client.ts";
import { connect, type ConnectionArguments } from "../client/connect.ts";
import { CommandError, type CommandIo, UsageError } from "../command.ts";
import { columnOf, formatRecord, formatRecords } from "../output/show-reply.ts";
import { readRecord, readRecords, readText, type ReplyRecord } from "../output/reply-fields.ts";
import { receiptNotes } from "../resources/receipt.ts";
import { askYes, readPassword } from "../read-input.ts";
import { exitCodes } from "../../process/program.ts";
import { findEntity, findId, type Owners, titleOf } from "./entities.ts";
import { assemble, inOptions } from "./fields.ts";
import { asksFirst, type Typed, type Verb, type VerbCall } from "./verb.ts";

export async function runVerb(verb: Verb, typed: Typed, io: CommandIo): Promise<number> {
  const { spec } = verb;
  const isChange = verb.operation.method === "PATCH" && spec.fixed === undefined;
  if (isChange && typed.values.size === 0) throw new UsageError("name at least one change");
  const values = await withPassword(typed, io);
  await using client = await connect(connectionOf(typed.options), io);
  const isJson = typed.options["json"] === true;
  const call = { ...typed, values, verb, client, io, isJson };
  try {
    return await (spec.run ?? runOperation)(call);
  } catch (error) {
    throw error instanceof AdminRefusal ? explained(error, spec) : error;
  }
}

function connectionOf(options: ReplyRecord): ConnectionArguments {
  return {
    url: textOf(options, "url"),
    tokenFile: textOf(options, "tokenFile"),
    isOffline: options["offline"] === true,
    config: textOf(options, "config"),
    "data-dir": textOf(options, "dataDir"),
  };
}

function textOf(options: ReplyRecord, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** Names options instead of fields, and what to do while the gateway cannot reach its database. */
function explained(
  { status, code, message, param }: AdminRefusal,
  { hasReceipt = false }: Verb["spec"],
): AdminRefusal {
  const told = [inOptions(message, param)];
  if (code === "storage_unavailable") {
    told.push("`sluice doctor` on a gateway looks for the cause.");
    if (hasReceipt) told.push("To stop a key meanwhile, refuse it in the proxy.");
  }
  return new AdminRefusal({ status, code, message: told.join(" "), param });
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
  const isFound = operation.method === "GET" && operation.path.endsWith("{id}");
  const answer = readRecord(isFound ? (found ?? (await ask(call))) : await ask(call));
  return showAnswer(call, answer);
}

/** Asks a person at a terminal before something is ended or deleted permanently. */
async function confirm({ verb, found, io, options }: VerbCall): Promise<void> {
  const { entity, spec } = verb;
  if (entity === undefined || !io.input.isTerminal || options["yes"] === true) return;
  const isSure = await askYes(`${titleOf(entity, found ?? {})}: ${spec.name} permanently?`, io);
  if (!isSure) throw new CommandError("Nothing was changed.");
}

export async function showAnswer(call: VerbCall, answer: ReplyRecord): Promise<number> {
  const { client, io, isJson, verb } = call;
  if (isJson) io.print(JSON.stringify(answer));
  else {
    show(call, answer);
    for (const note of (await verb.spec.notes?.(call, answer)) ?? []) io.report(note);
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
  if (operation.method === "GET") {
    const isPaged = "cursor" in (operation.query?.shape ?? {});
    if (isPaged) return readPages(client, { path, query: fields });
    return client.request("GET", path, { query: textsOf(fields) });
  }
  const idempotencyKey = textOf(options, "idempotencyKey");
  const body = bodyOf(call, fields);
  const details: AdminRequestDetails = { ...(body && { body }), idempotencyKey };
  return client.request(operation.method, path, details);
}

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
  return assemble(values);
}

function ownersOf({ options }: Typed): Owners {
  return { account: textOf(options, "account"), environment: textOf(options, "environment") };
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
  readonly query: ReplyRecord;
}

/** Reads as many pages of a list as the requested items need. */
async function readPages(
  client: AdminClient,
  { path, query: fields }: ListRequest,
): Promise<ReplyRecord> {
  const query = textsOf(fields);
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

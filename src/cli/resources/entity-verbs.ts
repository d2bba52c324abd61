import type { Arguments, OptionSpecs } from "../arguments.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { pathOf } from "./find-entity.ts";
import { readText, type ReplyRecord } from "../output/reply-fields.ts";
import { showRecord } from "../output/show-reply.ts";
import { defineVerb, type Verb, type VerbCall } from "../verb.ts";

/** What the verbs that all resources have need to know of one. */
export interface Entity<Name extends string> {
  /** `account`; the command has an s at its end. */
  readonly noun: string;
  /** In the admin API. */
  readonly path: string;
  /** As the help names what is to be given, such as `ACCOUNT`. */
  readonly takes: string;
  /** What tells things of one name apart. */
  readonly options: OptionSpecs<Name>;
  /** The thing that the command line names. */
  find(call: EntityCall<Name>): Promise<ReplyRecord>;
  /** How a message names it. */
  title(record: ReplyRecord): string;
  /** What follows a verb in an example. */
  readonly example: string;
}

export type EntityCall<Name extends string> = Pick<VerbCall<Name>, "client"> & {
  readonly args: Arguments<Name>;
};

export function showVerb<Name extends string>(entity: Entity<Name>): Verb {
  const { noun, takes, options, example } = entity;
  return defineVerb<Name>({
    name: "show",
    takes,
    summary: `show all of one ${noun}`,
    options,
    examples: [`${noun}s show ${example}`],
    async run(call) {
      showRecord(call, await entity.find(call));
      return exitCodes.ok;
    },
  });
}

export interface SwitchText {
  readonly name: "disable" | "enable";
  readonly summary: string;
  /** What is so now, for whoever asked. */
  readonly effect: string;
}

/** `disable` and `enable`. */
export function switchVerb<Name extends string>(entity: Entity<Name>, text: SwitchText): Verb {
  const { noun, path, takes, options, example } = entity;
  const { name, summary, effect } = text;
  return defineVerb<Name>({
    name,
    takes,
    summary,
    options,
    examples: [`${noun}s ${name} ${example}`],
    async run(call) {
      const found = await entity.find(call);
      const changed = await changeEntity(call, {
        path,
        found,
        fields: { disabled: name === "disable" },
      });
      if (call.isJson) showRecord(call, changed);
      else call.io.report(`${entity.title(found)} is ${name}d. ${effect}`);
      return exitCodes.ok;
    },
  });
}

/** `delete`, and `revoke` of what stays as history. */
export function deleteVerb<Name extends string>(
  entity: Entity<Name>,
  text: { readonly name: "delete" | "revoke"; readonly summary: string; readonly effect: string },
): Verb {
  const { noun, path, takes, options, example } = entity;
  const { name, summary, effect } = text;
  return defineVerb<Name>({
    name,
    takes,
    summary,
    options,
    examples: [`${noun}s ${name} ${example}`],
    async run(call) {
      const found = await entity.find(call);
      const answer = await call.client.request("DELETE", pathOf(path, found));
      if (call.isJson) showRecord(call, answer);
      else call.io.report(`${entity.title(found)} is ${name}d. ${effect}`.trimEnd());
      return exitCodes.ok;
    },
  });
}

export interface EntityChange {
  readonly path: string;
  /** As it was read: the change is made from this revision. */
  readonly found: ReplyRecord;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Changes fields; refused when somebody else changed the thing meanwhile. */
export function changeEntity(
  { client }: Pick<VerbCall, "client">,
  { path, found, fields }: EntityChange,
): Promise<unknown> {
  const body = { revision: found["revision"], ...fields };
  return client.request("PATCH", pathOf(path, found), { body });
}

/** `Account acct_... 'shop'`. */
export function titleWithName(noun: string, field = "name"): (record: ReplyRecord) => string {
  return (record) => `${noun} ${readText(record, "id")} '${readText(record, field)}'`;
}

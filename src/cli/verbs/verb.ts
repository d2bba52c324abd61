import { Option } from "commander";
import type { AdminClient } from "../client/admin-client.ts";
import type { CommandIo } from "../command.ts";
import type { Column } from "../output/show-reply.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { describedOperation, type DescribedOperation } from "./described-operations.ts";
import { entities, type Entity } from "./entities.ts";
import { fieldsOf, type Field, type FieldTexts } from "./fields.ts";

/** One thing that can be done: what the command line adds to an operation of the control plane. */
export interface VerbSpec {
  /** `rotate` of `sluice keys rotate`. */
  readonly name: string;
  /** Id of the operation. */
  readonly operation: string;
  readonly summary?: string;
  /** What is typed without an option: a field of the body, or what `run` makes something of. */
  readonly argument?: string;
  /** Fields that have no option. */
  readonly without?: readonly string[];
  /** The only fields that have one. */
  readonly only?: readonly string[];
  readonly texts?: FieldTexts;
  /** Beside those of the fields, for `run`. */
  readonly options?: readonly (readonly [flags: string, about: string])[];
  /** Options of which only one may be given, by their names. */
  readonly conflict?: readonly [string, string];
  /** Fields that are always sent. */
  readonly fixed?: ReplyRecord;
  /** What follows the name of the program, one line each; another program may pipe into it. */
  readonly examples: readonly string[];
  /** Throws for what the control plane would tell less plainly. */
  readonly check?: (call: VerbCall) => void;
  /** Of a table: fields of what is listed, or columns of another title. */
  readonly columns?: readonly (string | Column)[];
  readonly whenEmpty?: string;
  /** What is so now, instead of the answer: `disabled.`. */
  readonly done?: string;
  /** Prints the answer for people. */
  readonly show?: (call: VerbCall, answer: ReplyRecord) => void;
  /** Told beside the answer. */
  readonly notes?: (call: VerbCall, answer: ReplyRecord) => readonly string[];
  readonly exitCode?: (answer: ReplyRecord) => number;
  /** Instead of asking for the operation once. */
  readonly run?: (call: VerbCall) => Promise<number>;
}

/** A verb, ready to be typed. */
export interface Verb {
  readonly spec: VerbSpec;
  readonly operation: DescribedOperation;
  readonly fields: readonly Field[];
  /** Name of what is typed without an option; in brackets when it may be left out. */
  readonly argument: string | undefined;
  /** What the path of the operation names. */
  readonly entity: Entity | undefined;
  /** Beside those of fields and those that all verbs have. */
  readonly options: readonly Option[];
}

/** What somebody typed. */
export interface Typed {
  readonly argument: string | undefined;
  readonly values: ReadonlyMap<Field, unknown>;
  /** All options, by their names in camel case. */
  readonly options: ReplyRecord;
}

export interface VerbCall extends Typed {
  readonly verb: Verb;
  /** Connects at the first request, so that mistakes of the command line are told before. */
  readonly client: AdminClient;
  readonly io: CommandIo;
  /** Whether a script reads the answer. */
  readonly isJson: boolean;
  /** What the path of the operation names, as it was read before. */
  readonly found?: ReplyRecord | undefined;
}

/** Said by other fields and verbs: `revision` by what was read, `disabled` by two verbs. */
const never = new Set(["revision", "disabled"]);

export function verbOf(spec: VerbSpec, nowMs: number): Verb {
  const operation = describedOperation(spec.operation);
  const { without = [], only, texts = {} } = spec;
  const fields = fieldsOf(operation, texts, nowMs).filter(({ path: [name] }) => {
    const isWanted = only === undefined || only.includes(name);
    return isWanted && name !== spec.argument && !without.includes(name) && !never.has(name);
  });
  const [, parameter] = /\{(\w+)\}/.exec(operation.path) ?? [];
  const entity = parameter === "id" ? entityOf(operation.path) : undefined;
  const argument = spec.argument ?? entity?.noun ?? parameter;
  return { spec, operation, fields, entity, argument, options: optionsOf(spec, fields, entity) };
}

function entityOf(path: string): Entity | undefined {
  return Object.values(entities).find(({ noun }) => path.startsWith(`/admin/v1/${noun}s/`));
}

function optionsOf(
  { options = [] }: VerbSpec,
  fields: readonly Field[],
  entity: Entity | undefined,
): readonly Option[] {
  const made = options.map(([flags, about]) => new Option(flags, about));
  const named = [entity, ...fields.map((field) => field.entity)];
  if (!named.includes(entities.application)) return made;
  const places = [
    new Option("--account <account>", "Whose application it is, by id or name."),
    new Option("--environment <name>", "Where the application is."),
  ];
  const isNew = ({ long }: Option): boolean => fields.every(({ option }) => option.long !== long);
  return [...made, ...places.filter(isNew)];
}

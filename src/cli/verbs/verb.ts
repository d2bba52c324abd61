import { Option } from "commander";
import type { AdminClient } from "../client/admin-client.ts";
import type { CommandIo } from "../command.ts";
import type { Column } from "../output/show-reply.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { adminOperations } from "../../control/operations.ts";
import type { Operation } from "../../control/operation/operation.ts";
import { entities, type Entity } from "./entities.ts";
import { type Field, fieldsOf, type FieldTexts } from "./fields.ts";

/** An action of the command line, based on an operation of the control plane. */
export interface VerbSpec {
  /** `rotate` of `sluice keys rotate`. */
  readonly name: string;
  readonly operation: string;
  readonly summary?: string;
  readonly isDefault?: true;
  /** The positional argument: a field of the body, or an input of `run`. */
  readonly argument?: string;
  /** Fields that have no option. */
  readonly without?: readonly string[];
  /** The only fields that have an option. */
  readonly only?: readonly string[];
  readonly texts?: FieldTexts;
  /** Further options, for `run`. */
  readonly options?: readonly (readonly [flags: string, about: string])[];
  /** Names of options that exclude each other. */
  readonly conflict?: readonly [string, string];
  /** Fields that are always sent. */
  readonly fixed?: ReplyRecord;
  /** Lines without the name of the program. Default: the verb with its resource's example. */
  readonly examples?: readonly string[];
  /** Throws for mistakes that it can explain better than the control plane. */
  readonly check?: (call: VerbCall) => void;
  /** Columns of a table: fields, or columns with their own title. */
  readonly columns?: readonly (string | Column)[];
  readonly whenEmpty?: string;
  /** The end of a sentence to print instead of the answer: `is deleted.`. */
  readonly done?: string;
  readonly show?: (call: VerbCall, answer: ReplyRecord) => void;
  readonly notes?: (
    call: VerbCall,
    answer: ReplyRecord,
  ) => readonly string[] | Promise<readonly string[]>;
  /** Whether the answer tells how many processes have applied a change of keys. */
  readonly hasReceipt?: boolean;
  readonly exitCode?: (answer: ReplyRecord) => number;
  /** Replaces the single request of the operation. */
  readonly run?: (call: VerbCall) => Promise<number>;
}

export interface Verb {
  readonly spec: VerbSpec;
  readonly operation: Omit<Operation, "run">;
  readonly fields: readonly Field[];
  /** Name of the positional argument; in brackets when it is optional. */
  readonly argument: string | undefined;
  /** The type of object that the path of the operation names. */
  readonly entity: Entity | undefined;
  /** Options beside those of fields and those of all verbs. */
  readonly options: readonly Option[];
}

/** The arguments as they were read. */
export interface Typed {
  readonly argument: string | undefined;
  readonly values: ReadonlyMap<Field, unknown>;
  /** All options, by their names in camel case. */
  readonly options: ReplyRecord;
}

export interface VerbCall extends Typed {
  readonly verb: Verb;
  readonly client: AdminClient;
  readonly io: CommandIo;
  readonly isJson: boolean;
  /** The object that the path names, if it was looked up. */
  readonly found?: ReplyRecord | undefined;
}

/**
 * Fields without an option of their own: `revision` comes from the lookup, `disabled` from two
 * verbs, `expires_in_seconds` from `--expires`.
 */
const never = new Set(["revision", "disabled", "expires_in_seconds"]);

/** By id. They are only described here: none is run, so they need no services. */
const described = new Map(adminOperations(noServices()).map((each) => [each.id, each]));

function noServices(): Parameters<typeof adminOperations>[0];
function noServices(): unknown {
  return {};
}

export function verbOf(spec: VerbSpec): Verb {
  const operation = described.get(spec.operation);
  if (operation === undefined) throw new Error(`there is no operation ${spec.operation}`);
  const { without = [], only, texts = {} } = spec;
  const fields = fieldsOf(operation, texts).filter(({ path: [name] }) => {
    const isWanted = only === undefined || only.includes(name);
    return isWanted && name !== spec.argument && !without.includes(name) && !never.has(name);
  });
  const [, parameter] = /\{(\w+)\}/.exec(operation.path) ?? [];
  const entity = parameter === "id" ? entityOf(operation.path) : undefined;
  const argument = spec.argument ?? entity?.noun ?? parameter;
  const verb = { spec, operation, fields, entity, argument };
  const yes = asksFirst(verb)
    ? [
        new Option(
          "-y, --yes",
          "Do not ask for confirmation. Without a terminal, nothing is asked.",
        ),
      ]
    : [];
  return { ...verb, options: [...optionsOf(spec, fields, entity), ...yes] };
}

/** Whether the verb ends or deletes something permanently, and so asks first. */
export function asksFirst({ operation, entity, spec }: Omit<Verb, "options">): boolean {
  return operation.method === "DELETE" && entity !== undefined && spec.run === undefined;
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
  const owners = [
    new Option("--account <account>", "The account that owns the application, by id or name."),
    new Option("--environment <name>", "The environment of the application."),
  ];
  const isNew = ({ long }: Option): boolean => fields.every(({ option }) => option.long !== long);
  return [...made, ...owners.filter(isNew)];
}

/** Without an effect, the answer tells which processes have applied the change. */
type SwitchText = readonly [summary: string, effect?: string];

/** The two verbs that set the field `disabled`. */
export function switches(
  operation: string,
  texts: Readonly<Record<"disable" | "enable", SwitchText>>,
): VerbSpec[] {
  return (["disable", "enable"] as const).map((name) => {
    const [summary, effect] = texts[name];
    const fixed = { disabled: name === "disable" };
    const done = [`is ${name}d.`, ...(effect === undefined ? [] : [effect])].join(" ");
    const hasReceipt = effect === undefined;
    return { name, operation, summary, fixed, only: [], done, hasReceipt };
  });
}

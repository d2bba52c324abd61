import type { z } from "zod";
import { isSameValue } from "../../domain/json-object.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Page, PageRequest } from "../../store/control-store.ts";
import type { ControlTransaction, ControlView } from "../../store/repositories/control-store.ts";
import { changeOf, type Entities, type Kind } from "../audit/audit-fields.ts";
import { listOf, removedSchema } from "../contract/values.ts";
import type { AdminServices } from "../services.ts";
import { type AuditedChange, change, changeKeys, type Change } from "./change.ts";
import {
  defineOperation,
  type NoFields,
  type OperationDefinition,
  type Operation,
  type OperationCall,
  type Permission,
} from "./operation.ts";
import { emptyList, pageRequest, listScope } from "./scope.ts";

/** A kind of entity, and what its operations have in common. */
export interface Resource<Each extends Kind, View> {
  /** Names the path, `/admin/v1/keys`, and the heading, `Keys`. */
  readonly kind: Each;
  readonly reads: Permission;
  readonly changes: Permission;
  readonly schema: z.ZodType<View, View>;
  /** The same with the receipt of a change, if the change can touch keys. */
  readonly changedSchema?: z.ZodType<unknown, View>;
  /** The entity that a path names. Throws 404, also when the principal may not see it. */
  readonly find: (
    view: ControlView,
    named: string,
    principal: Principal,
  ) => Promise<Entities[Each]>;
  /** What processes know, for answers that change nothing. */
  readonly readFacts?: () => Promise<readonly LiveFacts[]>;
  /** Begins an answer; the function shows one entity of it. `reading`: unless it is of a change. */
  readonly show: (
    view: ControlView,
    reading?: Reading<Entities[Each]>,
  ) => Show<Entities[Each], View>;
}

export interface Reading<Entity> {
  /** All entities of the answer. */
  readonly listed: readonly Entity[];
  readonly facts: readonly LiveFacts[];
}

type Show<Entity, View> = (entity: Entity) => View | Promise<View>;

type Texts = Pick<Operation, "id" | "summary" | "description">;

/** The parts of an operation that its resource does not define. */
type Own<Body extends z.ZodObject, Answer extends z.ZodType, Input> = Omit<
  OperationDefinition<NoFields, Body, Answer>,
  "path" | "resource" | "roles" | "scope" | "query" | "run"
> & { run(input: Input): Promise<z.input<Answer>> };

type ListQuery = z.ZodObject &
  z.ZodType<{ limit: number; cursor?: string | undefined; account_id?: string | undefined }>;

type RevisedBody = z.ZodObject & z.ZodType<{ revision: number }>;

interface ListInput<Query> {
  readonly view: ControlView;
  readonly principal: Principal;
  readonly query: Query;
  /** The account whose entities are listed; undefined: all accounts. */
  readonly accountId: string | undefined;
  readonly page: PageRequest;
}

/** Slow work before the transaction of a change, which has its result. */
interface SlowWork<Body extends z.ZodObject, Ready> {
  prepare?(body: z.output<Body>): Promise<Ready>;
}

interface ChangeInput<Entity, View, Body, Ready> {
  readonly changing: Change;
  readonly ready: Ready | undefined;
  readonly call: OperationCall;
  readonly body: Body;
  readonly show: Show<Entity, View>;
}

interface EntityInput<Entity, View, Body, Ready = undefined> extends ChangeInput<
  Entity,
  View,
  Body,
  Ready
> {
  readonly entity: Entity;
  readonly parameters: Readonly<Record<string, string>>;
}

type Services = Pick<AdminServices, "store" | "clock" | "onKeysChanged">;

export class ResourceOperations<Each extends Kind, View> {
  readonly #resource: Resource<Each, View>;
  readonly #services: Services;

  constructor(resource: Resource<Each, View>, services: Services) {
    this.#resource = resource;
    this.#services = services;
  }

  create<Body extends z.ZodObject, Answer extends z.ZodType, Ready = undefined>(
    own: Omit<
      Own<Body, Answer, ChangeInput<Entities[Each], View, z.output<Body>, Ready>>,
      "method"
    > &
      SlowWork<Body, Ready>,
  ): Operation {
    return defineOperation<Answer, NoFields, Body>({
      ...this.#at("", "changes"),
      ...own,
      method: "POST",
      status: 201,
      run: async ({ call, body }) => {
        const ready = await own.prepare?.(body);
        return change(this.#services, call, (changing) => {
          const show = this.#resource.show(changing.transaction);
          return own.run({ changing, call, body, show, ready });
        });
      },
    });
  }

  /** Lists the entities of the account that the principal is bound to, or that the query names. */
  list<Query extends ListQuery>(
    own: Texts & {
      readonly query: Query;
      find(input: ListInput<z.output<Query>>): Promise<Page<Entities[Each]>>;
    },
  ): Operation {
    return defineOperation({
      ...this.#at("", "reads"),
      ...own,
      method: "GET",
      answer: listOf(this.#resource.schema),
      run: ({ call, query }) =>
        this.#read(async (view, facts) => {
          const { principal } = call;
          const { accountId, isEmpty } = listScope(principal, query.account_id);
          if (isEmpty) return emptyList;
          const input = { view, principal, query, accountId, page: pageRequest(query) };
          const page = await own.find(input);
          const show = this.#resource.show(view, { listed: page.items, facts });
          const data: View[] = [];
          for (const entity of page.items) data.push(await show(entity));
          return { data, next_cursor: page.next ?? null };
        }),
    });
  }

  get(own: Texts): Operation {
    return defineOperation({
      ...this.#at("/{id}", "reads"),
      ...own,
      method: "GET",
      answer: this.#resource.schema,
      run: ({ call, parameters }) =>
        this.#read(async (view, facts) => {
          const { find, show } = this.#resource;
          const entity = await find(view, parameters["id"] ?? "", call.principal);
          return show(view, { listed: [entity], facts })(entity);
        }),
    });
  }

  /** The database waits for nobody, so processes are asked before. */
  async #read<Result>(
    work: (view: ControlView, facts: readonly LiveFacts[]) => Promise<Result>,
  ): Promise<Result> {
    const facts = (await this.#resource.readFacts?.()) ?? [];
    return this.#services.store.read((view) => work(view, facts));
  }

  /** Changes the entity that the path names; `below` is the rest of the path. */
  change<Answer extends z.ZodType, Body extends z.ZodObject = NoFields, Ready = undefined>({
    below = "",
    ...own
  }: Own<Body, Answer, EntityInput<Entities[Each], View, z.output<Body>, Ready>> &
    SlowWork<Body, Ready> & { readonly below?: string }): Operation {
    return defineOperation<Answer, NoFields, Body>({
      ...this.#at(`/{id}${below}`, "changes"),
      ...own,
      run: async ({ call, parameters, body }) => {
        const ready = await own.prepare?.(body);
        const { answer, applied } = await changeKeys(this.#services, call, async (changing) => {
          const { find, show: begin } = this.#resource;
          const { transaction } = changing;
          const entity = await find(transaction, parameters["id"] ?? "", call.principal);
          const show = begin(transaction);
          return own.run({ changing, call, body, entity, parameters, show, ready });
        });
        return applied === undefined ? answer : Object.assign({}, answer, { applied });
      },
    });
  }

  /** Changes an entity from the revision that was read. `wanted` is its new state. */
  update<Body extends RevisedBody>(
    own: Texts & {
      readonly body: Body;
      wanted(
        input: EntityInput<Entities[Each], View, z.output<Body>>,
      ): Promise<Entities[Each]> | Entities[Each];
      store(
        transaction: ControlTransaction,
        wanted: Entities[Each],
        now: number,
      ): Promise<Entities[Each]>;
    },
  ): Operation {
    return this.change({
      ...own,
      method: "PATCH",
      answer: this.#resource.changedSchema ?? this.#resource.schema,
      run: async (input) => {
        const { changing, body, entity: before, show } = input;
        // The store refuses a revision that is not the current one.
        const wanted = { ...(await own.wanted(input)), revision: body.revision };
        // Also a repeated change tells how many processes have applied it.
        changing.touchesKeys();
        // Without a difference, there is no new revision and no audit entry.
        if (isSameValue(before, wanted)) return show(before);
        const after = await own.store(changing.transaction, wanted, changing.now);
        const entry = changeOf(this.#resource.kind, "update", { before, after });
        // Nothing of tokens and sessions is updated.
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion
        await changing.audit(entry as AuditedChange);
        return show(after);
      },
    });
  }

  /** Removes an entity for good; `run` also writes the entry of the audit. */
  delete(
    own: Texts & { run(input: EntityInput<Entities[Each], View, unknown>): Promise<void> },
  ): Operation {
    return this.change({
      ...own,
      method: "DELETE",
      answer: removedSchema,
      run: async (input) => {
        await own.run(input);
        return { id: input.entity.id, deleted: true as const };
      },
    });
  }

  #at(below: string, use: "reads" | "changes") {
    const { kind, [use]: permission } = this.#resource;
    const resource = `${kind.charAt(0).toUpperCase()}${kind.slice(1)}s`;
    return { path: `/admin/v1/${kind}s${below}`, resource, ...permission };
  }
}

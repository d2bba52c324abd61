import type { z } from "zod";
import { accountSchema } from "../../src/control/contract.ts";
import { ensureApplication, issueKey, type NewKey } from "./issue-key.ts";
import type { Operation } from "../../src/control/operation/operation.ts";
import { adminOperations } from "../../src/control/operations.ts";
import { requirePermission } from "../../src/edge/dispatch/admin-dispatch.ts";
import {
  createRunOperation,
  type OperationRequest,
  type OperationAnswer,
  type RunOperation,
} from "../../src/control/operation/run-operation.ts";
import type {
  ConfigurationInUse,
  Platform,
  PlatformPool,
  KeysApplied,
} from "../../src/control/services.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { localPrincipal } from "../../src/control/sign-in/services.ts";
import type { Application } from "../../src/store/entities.ts";
import type { AuditRecord } from "../../src/store/audit.ts";
import { GatewayError } from "../../src/domain/errors/gateway-error.ts";
import type { ProcessRow } from "../../src/store/process-row.ts";
import type { ProcessStatus } from "../../src/control/platform/process-status.ts";
import type { Plan } from "../../src/domain/limits/plan.ts";
import type { Refusal } from "../../src/domain/errors/refusal.ts";
import type { Principal } from "../../src/domain/principal.ts";
import { openStores } from "../../src/store/sqlite/open-stores.ts";
import { ManualClock } from "./manual-clock.ts";
import { modelOf } from "./pipeline-fixtures.ts";
import { testPeppers } from "./test-peppers.ts";

export const operator: Principal = localPrincipal();

export function holderOf(accountId: string): Principal {
  const name = `${accountId}@example.com`;
  return {
    ...operator,
    kind: "session",
    userId: "user_h",
    name,
    role: "account_holder",
    accountId,
  };
}

export const auditor: Principal = { ...operator, kind: "token", userId: "user_a", role: "auditor" };

export interface FixtureRequest {
  /** Default: the operator. */
  readonly as?: Principal;
  /** For `{id}` in the path. */
  readonly id?: string;
  /** For `{name}` in the path. */
  readonly name?: string;
  /** For `{public_id}` in the path. */
  readonly publicId?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly key?: string;
  readonly signal?: AbortSignal;
}

/** The input of an operation. */
export function requestOf(request: FixtureRequest): OperationRequest {
  const { as = operator, id, name, publicId, query, body, key } = request;
  const signal = request.signal ?? new AbortController().signal;
  return {
    call: { id: "req_test", principal: as, signal, address: "192.0.2.7" },
    parameters: {
      ...(id !== undefined && { id }),
      ...(name !== undefined && { name }),
      ...(publicId !== undefined && { public_id: publicId }),
    },
    query,
    body,
    idempotencyKey: key,
  };
}

/** Runs an operation as the listener does: once the principal may. */
export async function runPermitted(
  run: RunOperation,
  operation: Operation,
  request: OperationRequest,
): Promise<OperationAnswer> {
  requirePermission(request.call.principal, operation);
  return run(operation, request);
}

/** The operations of the control plane on an in-memory database, with a stopped clock. */
export class AdminFixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly stores = openStores(":memory:", this.clock, { peppers: testPeppers() });
  readonly lastUses = new Map<string, number>();
  readonly refusals: Refusal[] = [];
  processes: readonly ProcessStatus[] = [];
  keyChanges = 0;
  keysApplied: KeysApplied | undefined;
  processRows: readonly ProcessRow[] = [];
  readonly services: Parameters<typeof adminOperations>[0] = {
    passwords: cheapPasswords(),
    settings: { sessionIdleMs: 1_800_000 },
    publicUrl: () => "https://console.example.com",
    store: this.stores.control,
    reports: this.stores.reports,
    usage: this.stores.usage,
    prices: this.stores.prices,
    costs: this.stores.costs,
    refusals: {
      find: async (id) => this.refusals.find((refusal) => refusal.id === id),
      list: async ({ keyId, accountId }, limit) =>
        this.refusals
          .filter(({ explanation }) => keyId === undefined || explanation.keyId === keyId)
          .filter(
            ({ explanation }) => (accountId ?? explanation.accountId) === explanation.accountId,
          )
          .slice(0, limit),
    },
    live: { machine: "host-a", facts: async () => [], limits: async () => [] },
    clock: this.clock,
    random: (target) => crypto.getRandomValues(target),
    peppers: testPeppers(),
    platform: () => this.platform,
    configuration: () => this.configuration,
    processes: () => Promise.resolve(this.processes),
    lastUse: (publicId) => this.lastUses.get(publicId),
    onKeysChanged: () => {
      this.keyChanges += 1;
      return Promise.resolve(this.keysApplied);
    },
    processRows: () => Promise.resolve(this.processRows),
    lastProcessRows: () => Promise.resolve(this.processRows),
  };
  readonly operations = adminOperations(this.services);
  readonly runOperation = createRunOperation(this.services);
  platform: Platform = testPlatform;
  configuration: ConfigurationInUse = { path: undefined, loadedAt: 0, settings: [] };

  operation(id: string): Operation {
    const found = this.operations.find((operation) => operation.id === id);
    if (found === undefined) throw new Error(`there is no operation ${id}`);
    return found;
  }

  result(operationId: string, request: FixtureRequest = {}): Promise<OperationAnswer> {
    return runPermitted(this.runOperation, this.operation(operationId), requestOf(request));
  }

  /** The body of the answer, read by the schema that it is expected to fit. */
  async run<Answer>(
    schema: z.ZodType<Answer>,
    operationId: string,
    request: FixtureRequest = {},
  ): Promise<Answer> {
    return schema.parse((await this.result(operationId, request)).body);
  }

  /** The error with which it ends. */
  async refusal(operationId: string, request: FixtureRequest = {}): Promise<GatewayError> {
    try {
      await this.result(operationId, request);
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
    throw new Error(`${operationId} was not refused`);
  }

  account(name = "first"): Promise<z.infer<typeof accountSchema>> {
    return this.run(accountSchema, "createAccount", {
      body: { name, plans: ["pilot", "standard"] },
    });
  }

  application(account: string, name = "search"): Promise<Application> {
    const names = { account, application: name, environment: "production" };
    return ensureApplication(this.services, names);
  }

  /** A key on the plan `standard`. */
  issue(applicationId: string, more: Partial<NewKey> = {}): ReturnType<typeof issueKey> {
    return issueKey(this.services, { applicationId, plan: "standard", ...more });
  }

  /** Newest first. */
  async audit(): Promise<readonly AuditRecord[]> {
    const page = await this.stores.control.read((view) => view.audit.list({}, { limit: 500 }));
    return page.items;
  }

  /** Every column of every table, as text. */
  dump(): Promise<string> {
    return this.stores.connection.use((database) => {
      const tables = database
        .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'")
        .all();
      const rows = tables.flatMap(({ name }) =>
        database.query<unknown, []>(`SELECT * FROM "${name}"`).all(),
      );
      return JSON.stringify(rows, (_name, value: unknown) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value,
      );
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stores.connection.close();
  }
}

const testPlatform: Platform = {
  environments: [
    {
      name: "production",
      hosts: ["models.example.com"],
      models: [
        modelOf({ fallbacks: ["gamma-large"] }),
        modelOf({ alias: "embed-text-v2", kind: "embedding", maxOutputTokens: undefined }),
      ],
    },
    { name: "staging", hosts: ["*"], models: [modelOf({ alias: "gamma-large" })] },
  ],
  plans: new Map<string, Plan>([
    ["pilot", planOf("pilot", 60, false)],
    ["standard", planOf("standard", 300, false)],
    ["pro", planOf("pro", 1000, true)],
    ["enterprise", { ...planOf("enterprise", 0, true), limits: undefined }],
  ]),
  pools: new Map([["main", poolOf("main")]]),
  endUsers: "pseudonym",
};

function planOf(name: string, requestsPerMinute: number, provisioned: boolean): Plan {
  const limits = { requestsPerMinute, tokensPerMinute: 1_000_000 };
  const rest = { queueTimeoutMs: 0, isIdempotent: false, responsesKeepMs: 0, overrunFactor: 3 };
  const words = { uncapped: "debt", whenLimitsUnavailable: "local" } as const;
  return { name, limits, provisioned, ...words, ...rest };
}

/** A shared pool of which 78 units can be sold. */
export function poolOf(name: string, values: Partial<PlatformPool> = {}): PlatformPool {
  return {
    name,
    kind: "shared",
    tokensPerMinute: 1_000_000,
    maxInFlight: undefined,
    onDemandFloorPercent: 20,
    unitTokensPerMinute: 10_000,
    models: [{ environment: "production", alias: "alpha-sonnet-4" }],
    targets: ["upstream-a/model-a"],
    ...values,
  };
}

import { metricsOf } from "../../support/metrics-of.ts";
import { z } from "zod";
import { issuedKeySchema } from "../../../src/control/contract/keys.ts";
import { type Machine, type MachineStack, statusOf } from "../machine-stack.ts";
import { askAdmin } from "../stack-admin.ts";
import { embed } from "../stack-load.ts";

export interface NewTenant {
  readonly name: string;
  readonly requestsPerMinute: number;
  /** Default: `enterprise`. */
  readonly plan?: string;
}

/** A key in an account of its own. */
export interface Tenant extends NewTenant {
  readonly keyId: string;
  readonly key: string;
}

const created = z.object({ id: z.string() });

/** Creates a key, and waits until every gateway accepts it. */
export async function createTenant(stack: MachineStack, tenant: NewTenant): Promise<Tenant> {
  const [first] = stack.machines;
  if (first === undefined) throw new Error("there is no gateway");
  const { name, requestsPerMinute, plan = "enterprise" } = tenant;
  const add = (path: string, body: object) => askAdmin(first, "POST", path, body);
  const account = created.parse(await add("/accounts", { name }));
  const place = { account_id: account.id, environment: "production" };
  const application = created.parse(await add("/applications", { ...place, name: "search" }));
  const limits = { requests_per_minute: requestsPerMinute, tokens_per_minute: 1_000_000_000 };
  const issued = issuedKeySchema.parse(
    await add("/keys", { application_id: application.id, plan, limits }),
  );
  const { key, api_key: text } = issued;
  for (const { process } of stack.machines) await untilKnown(process.dataUrl, text);
  return { ...tenant, keyId: key.id, key: text };
}

/** Until all processes of a gateway accept a key: each new connection is that of the next one. */
export async function untilKnown(url: string, key: string): Promise<void> {
  for (let known = 0; known < 4;) {
    if ((await statusOf(url, key)) === 200) known += 1;
    else await Bun.sleep(50);
  }
}

/** Whether a process of a gateway decides about limits by itself. */
export async function isDegraded({ process }: Machine): Promise<boolean> {
  const page = await metricsOf(process.adminUrl);
  return /^sluice_limits_degraded\S* 1$/m.test(page);
}

/** What a gateway says of its readiness, such as `200 ready`. */
export async function readinessOf({ process }: Machine): Promise<string> {
  const response = await fetch(`${process.dataUrl}/readyz`);
  return `${response.status} ${(await response.text()).trim()}`;
}

/** Until every gateway is ready, and none decides about limits by itself. */
export async function untilWhole({ machines }: Pick<MachineStack, "machines">): Promise<void> {
  for (const machine of machines) {
    while (await isDegraded(machine)) await Bun.sleep(20);
    while ((await readinessOf(machine)) !== "200 ready") await Bun.sleep(20);
  }
}

const onlyAdmitted = 30;

/**
 * Until Valkey decides: a key whose calls all come to one gateway is admitted more often than within
 * the shares of its processes. Other keys are tried, as decisions may come too late on a busy machine.
 */
export async function untilDecidedByServer(stack: MachineStack): Promise<void> {
  const { machines } = stack;
  const url = machines[0]?.process.dataUrl ?? "";
  for (;;) {
    const name = `decided ${crypto.randomUUID()}`;
    const { key } = await createTenant(stack, { name, requestsPerMinute: onlyAdmitted });
    let admitted = 0;
    for (let call = 0; call < onlyAdmitted; call += 1) {
      if ((await embed(url, key)).status === 200) admitted += 1;
    }
    if (admitted > onlyAdmitted / machines.length) return;
  }
}

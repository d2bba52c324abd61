import { type ComponentType, lazy } from "react";
import type { UserView } from "./api/contract.ts";
import type { PageProps } from "./parts/page.tsx";
import { useUser } from "./shell/role.ts";

export interface PageEntry {
  /** As wouter has it; the server must know its first part: `src/control/console/console.ts`. */
  readonly path: string;
  /** Who has it; default: everybody. */
  readonly of?: keyof typeof readers;
  readonly Page: ComponentType<PageProps>;
  /** Its place in the navigation; a page without one is reached from others. */
  readonly link?: PageLink;
}

export interface PageLink {
  readonly name: string;
  readonly group: (typeof groups)[number];
  /** Pressed after `g`, it leads there. */
  readonly key: string;
}

/** In the order of the navigation. The first group has no title. */
export const groups = ["", "Use", "Understand", "Run", "Govern", "Me"] as const;

const readers = {
  changers: ({ role }: UserView) => role !== "auditor",
  overseers: ({ role }: UserView) => role !== "account_holder",
  /** Operators, and auditors of all accounts. */
  unbound: ({ account_id: account }: UserView) => account === null,
};

/** Every page there is. */
const pages: readonly PageEntry[] = [
  {
    path: "/",
    Page: page(async () => (await import("./pages/home/home.tsx")).HomePage),
    link: { name: "Home", group: "", key: "h" },
  },
  {
    path: "/keys",
    Page: page(async () => (await import("./pages/keys/keys.tsx")).KeysPage),
    link: { name: "Keys", group: "Use", key: "k" },
  },
  {
    path: "/keys/:id",
    Page: page(async () => (await import("./pages/keys/key.tsx")).KeyPage),
  },
  {
    path: "/keys/:id/rotate",
    of: "changers",
    Page: page(async () => (await import("./pages/keys/rotate-key.tsx")).RotateKeyPage),
  },
  {
    path: "/models",
    Page: page(async () => (await import("./pages/models/models.tsx")).ModelsPage),
    link: { name: "Models", group: "Use", key: "m" },
  },
  {
    path: "/playground",
    of: "changers",
    Page: page(async () => (await import("./pages/playground/playground.tsx")).PlaygroundPage),
    link: { name: "Playground", group: "Use", key: "p" },
  },
  {
    path: "/usage",
    Page: page(async () => (await import("./pages/usage/usage.tsx")).UsagePage),
    link: { name: "Usage", group: "Understand", key: "u" },
  },
  {
    path: "/calls",
    Page: page(async () => (await import("./pages/calls/calls.tsx")).CallsPage),
    link: { name: "Calls", group: "Understand", key: "c" },
  },
  {
    path: "/calls/:id",
    Page: page(async () => (await import("./pages/calls/call.tsx")).CallPage),
  },
  {
    path: "/budgets",
    Page: page(async () => (await import("./pages/budgets/budgets.tsx")).BudgetsPage),
    link: { name: "Budgets", group: "Understand", key: "b" },
  },
  {
    path: "/targets",
    of: "unbound",
    Page: page(async () => (await import("./pages/targets/targets.tsx")).TargetsPage),
    link: { name: "Targets", group: "Run", key: "t" },
  },
  {
    path: "/pools",
    Page: page(async () => (await import("./pages/targets/pools.tsx")).PoolsPage),
    link: { name: "Pools", group: "Run", key: "l" },
  },
  {
    path: "/gateways",
    of: "unbound",
    Page: page(async () => (await import("./pages/targets/gateways.tsx")).GatewaysPage),
    link: { name: "Gateways", group: "Run", key: "g" },
  },
  {
    path: "/accounts",
    of: "overseers",
    Page: page(async () => (await import("./pages/accounts/accounts.tsx")).AccountsPage),
    link: { name: "Accounts", group: "Govern", key: "a" },
  },
  {
    path: "/accounts/:id",
    Page: page(async () => (await import("./pages/accounts/account.tsx")).AccountPage),
  },
  {
    path: "/prices",
    of: "unbound",
    Page: page(async () => (await import("./pages/prices/prices.tsx")).PricesPage),
    link: { name: "Prices", group: "Govern", key: "r" },
  },
  {
    path: "/users",
    of: "overseers",
    Page: page(async () => (await import("./pages/users/users.tsx")).UsersPage),
    link: { name: "Users", group: "Govern", key: "s" },
  },
  {
    path: "/audit",
    Page: page(async () => (await import("./pages/audit/audit.tsx")).AuditPage),
    link: { name: "Audit", group: "Govern", key: "d" },
  },
  {
    path: "/configuration",
    of: "unbound",
    Page: page(async () => (await import("./pages/configuration/configuration.tsx")).Configuration),
    link: { name: "Configuration", group: "Govern", key: "f" },
  },
  {
    path: "/access",
    Page: page(async () => (await import("./pages/access/access.tsx")).AccessPage),
    link: { name: "Access", group: "Me", key: "x" },
  },
];

/** Those of the user who is signed in. */
export function usePages(): readonly PageEntry[] {
  const user = useUser();
  return pages.filter(({ of }) => of === undefined || (user && readers[of](user)));
}

/** The code of a page is loaded when it is first shown. */
function page(load: () => Promise<ComponentType<PageProps>>): ComponentType<PageProps> {
  return lazy(async () => ({ default: await load() }));
}

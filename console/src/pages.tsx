import { type ComponentType, lazy } from "react";
import type { Role } from "./api/contract.ts";
import type { PageProps } from "./parts/page.tsx";

export interface PageEntry {
  /** As wouter has it; the server must know its first part: `src/control/console/console.ts`. */
  readonly path: string;
  readonly roles: readonly Role[];
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

const everybody: readonly Role[] = ["operator", "account_holder", "auditor"];
const overseers: readonly Role[] = ["operator", "auditor"];

/** Every page there is. The first that a role may see is its home. */
export const pages: readonly PageEntry[] = [
  {
    path: "/",
    roles: everybody,
    Page: page(async () => (await import("./pages/home/home.tsx")).HomePage),
    link: { name: "Home", group: "", key: "h" },
  },
  {
    path: "/keys",
    roles: everybody,
    Page: page(async () => (await import("./pages/keys/keys.tsx")).KeysPage),
    link: { name: "Keys", group: "Use", key: "k" },
  },
  {
    path: "/keys/:id",
    roles: everybody,
    Page: page(async () => (await import("./pages/keys/key.tsx")).KeyPage),
  },
  {
    path: "/keys/:id/rotate",
    roles: ["operator", "account_holder"],
    Page: page(async () => (await import("./pages/keys/rotate-key.tsx")).RotateKeyPage),
  },
  {
    path: "/models",
    roles: everybody,
    Page: page(async () => (await import("./pages/models/models.tsx")).ModelsPage),
    link: { name: "Models", group: "Use", key: "m" },
  },
  {
    path: "/playground",
    roles: ["operator", "account_holder"],
    Page: page(async () => (await import("./pages/playground/playground.tsx")).PlaygroundPage),
    link: { name: "Playground", group: "Use", key: "p" },
  },
  {
    path: "/usage",
    roles: everybody,
    Page: page(async () => (await import("./pages/usage/usage.tsx")).UsagePage),
    link: { name: "Usage", group: "Understand", key: "u" },
  },
  {
    path: "/calls",
    roles: everybody,
    Page: page(async () => (await import("./pages/calls/calls.tsx")).CallsPage),
    link: { name: "Calls", group: "Understand", key: "c" },
  },
  {
    path: "/calls/:id",
    roles: everybody,
    Page: page(async () => (await import("./pages/calls/call.tsx")).CallPage),
  },
  {
    path: "/targets",
    roles: ["operator", "auditor"],
    Page: page(async () => (await import("./pages/targets/targets.tsx")).TargetsPage),
    link: { name: "Targets", group: "Run", key: "t" },
  },
  {
    path: "/pools",
    roles: everybody,
    Page: page(async () => (await import("./pages/targets/pools.tsx")).PoolsPage),
    link: { name: "Pools", group: "Run", key: "l" },
  },
  {
    path: "/gateways",
    roles: ["operator", "auditor"],
    Page: page(async () => (await import("./pages/targets/gateways.tsx")).GatewaysPage),
    link: { name: "Gateways", group: "Run", key: "g" },
  },
  {
    path: "/accounts",
    roles: overseers,
    Page: page(async () => (await import("./pages/accounts/accounts.tsx")).AccountsPage),
    link: { name: "Accounts", group: "Govern", key: "a" },
  },
  {
    path: "/accounts/:id",
    roles: everybody,
    Page: page(async () => (await import("./pages/accounts/account.tsx")).AccountPage),
  },
  {
    path: "/users",
    roles: overseers,
    Page: page(async () => (await import("./pages/users/users.tsx")).UsersPage),
    link: { name: "Users", group: "Govern", key: "s" },
  },
  {
    path: "/audit",
    roles: everybody,
    Page: page(async () => (await import("./pages/audit/audit.tsx")).AuditPage),
    link: { name: "Audit", group: "Govern", key: "d" },
  },
  {
    path: "/configuration",
    roles: overseers,
    Page: page(async () => (await import("./pages/configuration/configuration.tsx")).Configuration),
    link: { name: "Configuration", group: "Govern", key: "f" },
  },
  {
    path: "/access",
    roles: everybody,
    Page: page(async () => (await import("./pages/access/access.tsx")).AccessPage),
    link: { name: "Access", group: "Me", key: "x" },
  },
];

export function pagesFor(role: Role): readonly PageEntry[] {
  return pages.filter(({ roles }) => roles.includes(role));
}

/** The code of a page is loaded when it is first shown. */
function page(load: () => Promise<ComponentType<PageProps>>): ComponentType<PageProps> {
  return lazy(async () => ({ default: await load() }));
}

import "./shell.css";
import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { change } from "../api/client.ts";
import { signedOut, useSession } from "../api/session.ts";
import { queries } from "../api/use-read.ts";
import { groups, type PageEntry, usePages } from "../pages.tsx";
import { Button } from "../parts/button.tsx";
import { Select } from "../parts/field.tsx";
import { Keyboard } from "./keyboard.tsx";
import { roleNames, useUser } from "./role.ts";
import { Search } from "./search.tsx";
import { SignInOverlay } from "./sign-in.tsx";
import { themes, useTheme } from "./theme.ts";

/** What is around every page. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const session = useSession();
  const user = useUser();
  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="bar">
        <Link href="/" className="brand">
          Sluice
        </Link>
        <Search />
      </header>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Keyboard />
      {session.kind === "signed-in" && session.hasExpired && (
        <SignInOverlay email={user?.email ?? ""} />
      )}
    </div>
  );
}

/** On narrow screens this many are in the bar below; the others are behind "More". */
const mostInBar = 4;

function Navigation() {
  const [path] = useLocation();
  /** A navigation closes it. */
  const [openAt, setOpenAt] = useState<string>();
  const isOpen = openAt === path;
  const entries = usePages().filter(({ link }) => link !== undefined);
  const isHidden = entries.slice(mostInBar).some((entry) => isAt(entry, path));
  return (
    <nav
      onKeyDown={({ key }) => key === "Escape" && setOpenAt(undefined)}
      className={isOpen ? "nav open" : "nav"}
      aria-label="Pages"
    >
      <div className="nav-pages">
        {groups.map((group) => {
          const own = entries.filter(({ link }) => link?.group === group);
          if (own.length === 0) return null;
          return (
            <div key={group} className="nav-group">
              {group !== "" && <span className="nav-title">{group}</span>}
              <ul>
                {own.map((entry) => (
                  <NavItem key={entry.path} entry={entry} rank={entries.indexOf(entry)} />
                ))}
              </ul>
            </div>
          );
        })}
      </div>
      <div className="nav-foot stack">
        <Me />
      </div>
      <button
        type="button"
        className="nav-more"
        aria-expanded={isOpen}
        data-current={isHidden ? "" : undefined}
        onClick={() => setOpenAt(isOpen ? undefined : path)}
      >
        {isOpen ? "Close" : "More"}
      </button>
    </nav>
  );
}

function isAt({ path: own }: PageEntry, path: string): boolean {
  return own === "/" ? path === "/" : path === own || path.startsWith(`${own}/`);
}

function NavItem({ entry, rank }: { readonly entry: PageEntry; readonly rank: number }) {
  const [path] = useLocation();
  return (
    <li className={rank < mostInBar ? "in-bar" : undefined}>
      <Link
        href={entry.path}
        className="nav-link"
        aria-current={isAt(entry, path) ? "page" : undefined}
      >
        {entry.link?.name}
      </Link>
    </li>
  );
}

function Me() {
  const user = useUser();
  const [theme, setTheme] = useTheme();
  const signOut = async (): Promise<void> => {
    const answer = await change("DELETE /session", undefined);
    if (!answer.ok && answer.failure.status !== 401) return;
    queries.clear();
    signedOut(true);
  };
  const role = user === undefined ? "" : roleNames[user.role];
  return (
    <>
      <div className="small">
        <div className="nav-user" title={user?.email}>
          {user?.email}
        </div>
        <span className="muted">{role}</span>
      </div>
      <Select
        label="Theme"
        isLabelHidden
        value={theme}
        onChange={setTheme}
        options={themes.map((value) => ({ value, label: `Theme: ${value}` }))}
      />
      <div className="row">
        <Button look="quiet" onPress={signOut}>
          Sign out
        </Button>
        <a className="small" href="/admin/v1/docs">
          Admin API
        </a>
      </div>
    </>
  );
}

import { Suspense } from "react";
import { Route, Switch, useLocation } from "wouter";
import type { OneTimeLink } from "./api/link.ts";
import { useSession } from "./api/session.ts";
import { usePages } from "./pages.tsx";
import { Skeleton } from "./parts/page.tsx";
import { NotFound, PageBoundary } from "./shell/boundary.tsx";
import { LinkPage } from "./shell/link.tsx";
import { Shell } from "./shell/shell.tsx";
import { SignInPage } from "./shell/sign-in.tsx";

export function App({ link }: { readonly link: OneTimeLink | undefined }) {
  const session = useSession();
  switch (session.kind) {
    case "unknown":
      return link === undefined ? <Skeleton rows={8} /> : <LinkPage {...link} />;
    case "none":
      return <SignInPage />;
    case "signed-in":
      return (
        <Shell>
          <Pages />
        </Shell>
      );
  }
}

function Pages() {
  const entries = usePages();
  const [path] = useLocation();
  return (
    <PageBoundary key={path}>
      <Suspense fallback={<Skeleton />}>
        <Switch>
          {entries.map(({ path: each, Page }) => (
            <Route key={each} path={each}>
              {(parameters) => <Page id={idIn(parameters)} />}
            </Route>
          ))}
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </Suspense>
    </PageBoundary>
  );
}

function idIn(parameters: Readonly<Record<string, string | undefined>>): string {
  return parameters["id"] ?? "";
}

import { Component, type ReactNode } from "react";
import { Button, ButtonLink } from "../parts/button.tsx";
import { Page } from "../parts/page.tsx";

export function NotFound() {
  return (
    <Page title="There is no such page">
      <p>It does not exist, or your role does not have it.</p>
      <ButtonLink to="/">Go to the first page</ButtonLink>
    </Page>
  );
}

interface State {
  readonly hasFailed: boolean;
}

/** Keeps the navigation when a page fails, such as after an upgrade that removed its code. */
export class PageBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { hasFailed: false };

  static getDerivedStateFromError(): State {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    if (!this.state.hasFailed) return this.props.children;
    return (
      <Page title="This page does not work">
        <p>The gateway may have been upgraded since you opened the console.</p>
        <Button look="primary" onPress={() => window.location.reload()}>
          Load it again
        </Button>
      </Page>
    );
  }
}

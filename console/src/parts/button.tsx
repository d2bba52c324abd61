import "./button.css";
import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";
import { Link } from "wouter";

type Look = "primary" | "plain" | "danger" | "quiet";

type Left = "className" | "style" | "children" | "isPending" | "onPress";

export interface ButtonProps extends Omit<AriaButtonProps, Left> {
  readonly look?: Look;
  readonly children: ReactNode;
  /** What it started still runs: it keeps the focus, and does nothing. */
  readonly isBusy?: boolean;
  readonly onPress?: () => unknown;
}

export function Button({ look = "plain", children, isBusy = false, ...rest }: ButtonProps) {
  const { onPress, ...others } = rest;
  const press = (): void => {
    if (!isBusy) onPress?.();
  };
  return (
    <AriaButton {...others} className={`button ${look} ${isBusy ? "busy" : ""}`} onPress={press}>
      {children}
    </AriaButton>
  );
}

/** Looks like a button and leads to a page. */
export function ButtonLink({
  href,
  look = "plain",
  children,
}: {
  readonly href: string;
  readonly look?: Look;
  readonly children: ReactNode;
}) {
  return (
    <Link href={href} className={`button ${look}`}>
      {children}
    </Link>
  );
}

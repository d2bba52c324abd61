import "./button.css";
import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";
import { Link } from "wouter";
import { useHref } from "../url.ts";

export type Look = "primary" | "plain" | "danger" | "quiet";

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

interface LinkProps {
  /** The path of a page. */
  readonly to: string;
  /** What its address also says; see `useHref`. */
  readonly own?: Readonly<Record<string, string>>;
  readonly children: ReactNode;
}

/** A link to another page. */
export function AppLink({ to, own, children }: LinkProps) {
  return <Link href={useHref()(to, own)}>{children}</Link>;
}

/** The same, looking like a button. */
export function ButtonLink({
  to,
  own,
  look = "plain",
  children,
}: LinkProps & { readonly look?: Look }) {
  return (
    <Link href={useHref()(to, own)} className={`button ${look}`}>
      {children}
    </Link>
  );
}

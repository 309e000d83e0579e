// A widget in the place of its static view, which stands above it in a notebook; nbkit/views/host/outputs.py shows both.

import { h } from "../shared/dom.js";

/**
 * Makes the `render` of a widget that hides its static view while it is drawn. A rule hides it wherever it is, and whenever it
 * comes: a notebook that opens may draw the widget first. Where the widget ends, as its kernel does, the static view is back.
 * @param {(context: {model: any, el: HTMLElement}) => any} render
 */
export function inPlace(render) {
  return async (/** @type {{model: any, el: HTMLElement}} */ context) => {
    const end = await render(context);
    const name = context.model.get("static_class");
    if (!name) return end;
    // Of JupyterLab the whole output, as it has a margin.
    const rule = h("style", {}, `.${name}{display:none}.jp-OutputArea-child:has(.${name}){display:none}`);
    document.head.append(rule);
    return () => {
      rule.remove();
      end();
    };
  };
}

import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default ts.config(
  { ignores: ['dist/', 'node_modules/', 'wailsjs/', 'test-results/'] },
  js.configs.recommended,
  ...ts.configs.recommended,
  ...svelte.configs.recommended,
  { languageOptions: { globals: { ...globals.browser, ...globals.node } } },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: ['.svelte'], svelteConfig } },
  },
  {
    rules: {
      'svelte/no-at-html-tags': 'error', // SafeHtml.svelte is the one exception and says so
      'svelte/prefer-svelte-reactivity': 'off', // plain maps and sets are scratch paper here
      'no-undef': 'off', // the type checker does this
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
);

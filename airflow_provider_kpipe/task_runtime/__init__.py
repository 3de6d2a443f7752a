"""Helpers for the provider's tasks while they run: errors, the plan from XCom, frozen state, templates."""

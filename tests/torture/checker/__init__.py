"""The checker of a torture, which shares nothing with the product: it believes only what lies in the topics."""
